// Numbers as people read them.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** 1234 → "1,234" */
export const count = (value) => whole.format(value);

/** 1 → "1 request", 2 → "2 requests" */
export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** Milliseconds in three digits or so: "3.2 ms", "412 ms", "1.24 s". */
export function milliseconds(value) {
  if (value >= 999.5) return `${(value / 1000).toFixed(value < 9995 ? 2 : 1)} s`;
  return `${value.toFixed(value < 99.95 ? 1 : 0)} ms`;
}

/** Seconds since something began: "8 s", "3 min", "2 h". */
export function age(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h`;
}

/** A share from 0 to 1: "12%"; small ones with a decimal. */
export function percent(share) {
  const value = share * 100;
  return `${value > 0 && value < 9.95 ? value.toFixed(1) : value.toFixed(0)}%`;
}

/** US dollars; below one, with six decimals, so that digits stay where they are. */
export const usd = (value) => `$${value.toFixed(value < 1 ? 6 : 2)}`;
