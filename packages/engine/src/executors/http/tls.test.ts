import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import tls from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { callTo, performed, startCaller } from '../../../test/http-target.ts'
import { selfSigned } from '../../../test/self-signed.ts'

const DAY_MS = 86_400_000
const TODAY = { from: Date.now() - DAY_MS, until: Date.now() + DAY_MS }

async function setup({ address = '127.0.0.1', valid = TODAY, trusted = true } = {}) {
  const { cert, key } = selfSigned(address, valid)
  const seen: string[] = []
  const server = createServer({ cert, key }, (request, response) => {
    seen.push(request.headers['belfry-run-id'] as string)
    response.end('fine')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => server.closeAllConnections())
  onTestFinished(() => void server.close())
  if (trusted) trust(cert)
  const deps = startCaller()
  const call = callTo(deps, { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/` })
  return { seen, call, perform: () => performed(call, deps) }
}

/** As if the machine trusted it: everything else about the connection stays as it is. */
function trust(cert: string): void {
  const { connect } = tls
  const trusting = (options: tls.ConnectionOptions) => connect({ ...options, ca: [cert] })
  tls.connect = trusting as typeof connect
  onTestFinished(() => {
    tls.connect = connect
  })
}

test('a target with a certificate that is trusted is called over TLS, again and again', async () => {
  const t = await setup()
  for (let i = 0; i < 3; i++) expect(await t.perform()).toMatchObject({ kind: 'succeeded', statusCode: 200 })
  expect(t.seen).toEqual(Array(3).fill(t.call.runId))
})

test.each([
  ['that nobody vouches for', { trusted: false }, /self-signed/],
  ['of another address', { address: '127.0.0.2' }, /altnames/i],
  ['that has expired', { valid: { from: TODAY.from - DAY_MS, until: TODAY.from } }, /expired/],
])('a target with a certificate %s gets no request, and may be tried again', async (_, given, error) => {
  const t = await setup(given)
  // The second time, too: a connection that failed is not taken for one that works.
  for (let i = 0; i < 2; i++)
    expect(await t.perform()).toMatchObject({
      kind: 'failed',
      failureClass: 'network',
      retryable: true,
      written: false,
      statusCode: null,
      error: expect.stringMatching(error),
    })
  expect(t.seen).toEqual([])
})
