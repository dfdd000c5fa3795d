// A softmax average in parts: the numbers of attnbook.exact.online_softmax.partial, combine and finish. A part is { top, total,
// weighted }; `round` rounds every result, to double precision or to bfloat16.
const exactly = (number) => number;
const bits = new DataView(new ArrayBuffer(4));
function bfloat16(number) { // to the nearest of the numbers with 8 bits, a tie to the even one, as from float32
  bits.setFloat32(0, number);
  const whole = bits.getUint32(0);
  bits.setUint32(0, ((whole + 0x7fff + ((whole >>> 16) & 1)) & 0xffff0000) >>> 0);
  return bits.getFloat32(0);
}

function partial(scores, values, round) { // key by key
  const top = Math.max(...scores.map(round)); // −∞ of no key
  let total = 0, weighted = 0;
  scores.forEach((score, k) => {
    const share = round(Math.exp(round(round(score) - top)));
    total = round(total + share);
    weighted = round(weighted + round(share * round(values[k])));
  });
  return { top, total, weighted };
}

function combine(a, b, round) {
  const top = Math.max(a.top, b.top);
  if (top === -Infinity) return a; // no key in either
  const [f, g] = [a, b].map((one) => round(Math.exp(round(one.top - top))));
  const sum = (name) => round(round(f * a[name]) + round(g * b[name]));
  return { top, total: sum("total"), weighted: sum("weighted") };
}
const finish = (part, round) => round(part.weighted / part.total);

// The whole numbers below n, sorted by numbers that the last digit of a name draws: "shuffled 2" has an order of its own.
function shuffled(n, name) {
  const draw = (k) => {
    const value = 43758.5453 * Math.sin(12.9898 * (k + 1) + 78.233 * Number(name.at(-1)));
    return value - Math.floor(value);
  };
  return Array.from({ length: n }, (_, k) => k).sort((a, b) => draw(a) - draw(b));
}

// Part k has the keys from ends[k] to ends[k + 1]. After some steps: the parts that are left, each with those that it is made of;
// the last that was made is marked.
function combined(scores, values, ends, way, steps, round) {
  let left = ends.slice(1).map((end, k) => ({ ...partial(scores.slice(ends[k], end), values.slice(ends[k], end), round), of: [k] }));
  if (way.startsWith("shuffled")) left = shuffled(left.length, way).map((k) => left[k]);
  for (let done = 0, at = 0; done < steps; done++) {
    if (way !== "tree" || at + 1 >= left.length) at = 0;
    const [a, b] = left.slice(at, at + 2);
    left = left.map((one) => ({ ...one, last: false }));
    left.splice(at, 2, { ...combine(a, b, round), of: [...a.of, ...b.of].sort((p, q) => p - q), last: true });
    at += 1;
  }
  return left;
}
