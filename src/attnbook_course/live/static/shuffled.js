// The whole numbers below n, sorted by numbers that the last digit of a name draws: "shuffled 2" has an order of its own.
function shuffled(n, name) {
  const draw = (k) => {
    const value = 43758.5453 * Math.sin(12.9898 * (k + 1) + 78.233 * Number(name.at(-1)));
    return value - Math.floor(value);
  };
  return Array.from({ length: n }, (_, k) => k).sort((a, b) => draw(a) - draw(b));
}
