/*
 * An HTTP proxy in front of an AWS endpoint that answers some requests with an EC2 error of its own.
 */
import { createServer, request } from 'node:http';

/** @typedef {{ status: number, code: string, message: string }} Ec2Error */

/**
 * @param {import('node:test').TestContext} t it is closed after the test
 * @param {string} endpoint
 * @param {(action: string, region: string, body: URLSearchParams) => Ec2Error | null} refuse
 * @returns {Promise<{ endpoint: string, asked: { action: string, region: string }[] }>} asked: all requests, in order
 */
export async function startProxy(t, endpoint, refuse) {
  /** @type {{ action: string, region: string }[]} */
  const asked = [];
  const server = createServer(async (incoming, response) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const words = new URLSearchParams(body.toString());
    const action = words.get('Action') ?? '';
    // Credential=AKID/20260101/us-east-1/ec2/aws4_request
    const region = /Credential=[^/]+\/\d+\/([^/]+)\//.exec(incoming.headers.authorization ?? '')?.[1] ?? '';
    asked.push({ action, region });
    const error = refuse(action, region, words);
    if (error) return void response.writeHead(error.status, { 'Content-Type': 'text/xml' }).end(xmlOf(error));
    const { method, url = '/', headers } = incoming;
    const onward = request(new URL(url, endpoint), { method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    onward.end(body);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { endpoint: `http://127.0.0.1:${port}`, asked };
}

/** @param {Ec2Error} error */
function xmlOf({ code, message }) {
  const errors = `<Errors><Error><Code>${code}</Code><Message>${message}</Message></Error></Errors>`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Response>${errors}<RequestID>ea966190-f9aa-478e-9ede-example</RequestID></Response>`;
}
