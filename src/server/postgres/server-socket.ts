import { lookup as systemLookup } from 'node:dns'
import { type LookupFunction, Socket } from 'node:net'

/** How long one address of the server may take to answer before the next is tried, in milliseconds. */
const ATTEMPT_MS = 250

/**
 * Opens a socket for the driver. If the server's name has several addresses, it tries the next one after a quarter of a second, even if
 * Node's own option for that is off. Otherwise an address that drops packets would use up the whole time limit. The last address gets the
 * time that is left.
 */
export function openServerSocket(lookup: LookupFunction = systemLookup): Socket {
  const socket = new Socket()
  const connect = socket.connect.bind(socket)
  // The driver gives a port and a host, or the path of a Unix socket.
  const connectToAny = (port: number | string, host?: string): Socket =>
    typeof port === 'string' && host === undefined
      ? connect(port)
      : connect({
          port: Number(port),
          ...(host === undefined ? {} : { host }),
          lookup,
          autoSelectFamily: true,
          autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
        })
  return Object.assign(socket, { connect: connectToAny })
}
