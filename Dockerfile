# Compiles. The compiler and the type packages bring no install scripts that are needed here; Node itself is the image's.
FROM node:24-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json rolldown.config.ts ./
COPY src ./src
RUN npm run build

FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:24-slim
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY package.json ./
COPY config ./config
# The default store, data/relay.db, and the key made beside it are kept in the volume; nothing else is ever written to.
RUN mkdir /data && chown node:node /data && ln -s /data data
USER node
VOLUME /data

ENV NODE_ENV=production
# This and the sizes below are for less memory and a quicker start; neither makes it slower.
ENV MALLOC_ARENA_MAX=2
# What the health check asks: change it with the port of listen.public, or when that has TLS.
ENV HEALTH_URL=http://127.0.0.1:8080/healthz
# The carrier and the world; apps and operators. Inside a container listen.internal.host must be 0.0.0.0.
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
# There is no curl in a slim image.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(process.env.HEALTH_URL).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--enable-source-maps", "--min-semi-space-size=8", "--max-semi-space-size=8", "dist/main.js"]
CMD ["serve", "--config", "/config/relay.yaml"]
