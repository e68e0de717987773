// Requests to the emulator.

/** The answer to a call of the emulator's own API, decoded. What went wrong is an error that says it. */
export const call = async (method, path, body) => decoded(await send(method, path, body));

/** The response to a request. body: sent as JSON. */
export async function send(method, path, body) {
  const headers = { "content-type": "application/json" };
  return fetch(path, { method, headers, body: body && JSON.stringify(body) }).catch(() => {
    throw new Error("The emulator does not answer.");
  });
}

/** What a response holds, if it is a good one. */
export async function decoded(response) {
  const text = await response.text();
  const answer = text ? JSON.parse(text) : {};
  if (response.ok) return answer;
  throw new Error(answer.detail ?? answer.message ?? answer.Message ?? `Status ${response.status}.`);
}
