// The events of the emulator: one connection, made again whenever it breaks.

const SILENCE_MS = 4000; // events come every second at least
const PAUSE_MS = 1000;

/** Calls onEvent with each event, and onState with "live" or "lost" when that changes. */
export function listen(onEvent, onState) {
  let source;
  let watch;
  let state;

  function become(next) {
    if (next !== state) onState((state = next));
  }

  function connect() {
    source = new EventSource("/_events");
    source.onmessage = (message) => {
      become("live");
      expectMore();
      onEvent(JSON.parse(message.data));
    };
    source.onerror = lose;
    expectMore();
  }

  function expectMore() {
    clearTimeout(watch);
    watch = setTimeout(lose, SILENCE_MS);
  }

  function lose() {
    source.close();
    clearTimeout(watch);
    become("lost");
    watch = setTimeout(connect, PAUSE_MS);
  }

  connect();
}
