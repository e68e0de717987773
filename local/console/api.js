// Calls to the emulator's own API.

/** The answer, decoded. What went wrong is an error that says it. */
export async function call(method, path, body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) }).catch(() => {
    throw new Error("The emulator does not answer.");
  });
  const text = await response.text();
  const answer = text ? JSON.parse(text) : {};
  if (response.ok) return answer;
  throw new Error(answer.detail ?? answer.message ?? answer.Message ?? `Status ${response.status}.`);
}
