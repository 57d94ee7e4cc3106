# Every stage names one version of Node, that of package.json. To take in fixes of the system below it, build with --pull.

# The build stage. It runs no install scripts, because the compiler and the type packages need none.
FROM node:24.21.0-trixie-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json rolldown.config.ts ./
COPY src ./src
RUN npm run build

FROM node:24.21.0-trixie-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:24.21.0-trixie-slim
LABEL org.opencontainers.image.title="parcel-relay" \
  org.opencontainers.image.description="Receives, polls, merges, serves and relays a carrier's parcel status" \
  org.opencontainers.image.licenses="MIT"
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY package.json LICENSE ./
COPY config ./config
COPY docs ./docs
# The volume holds the default store, data/relay.db, and its key file. The relay writes nowhere else.
# The link on the PATH is for `docker exec`.
RUN mkdir /data && chown node:node /data && ln -s /data data && ln -s /app/dist/main.js /usr/local/bin/parcel-relay
# The user `node`, by number, so that a cluster can see that it is not root.
USER 1000:1000
VOLUME /data

ENV NODE_ENV=production
# This and the semi-space sizes below save memory and speed up the start without lowering throughput.
ENV MALLOC_ARENA_MAX=2
# The URL of the health check. Change it if you change the port of listen.public or turn on its TLS.
ENV HEALTH_URL=http://127.0.0.1:8080/healthz
# 8080: public listener (carrier); 8081: internal listener (apps, operators). In a container listen.internal.host must be 0.0.0.0.
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
# Uses Node, because slim images have no curl.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(process.env.HEALTH_URL).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--enable-source-maps", "--min-semi-space-size=8", "--max-semi-space-size=8", "dist/main.js"]
CMD ["serve", "--config", "/config/relay.yaml"]
