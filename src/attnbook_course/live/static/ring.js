// Ring attention step by step; ring_times.js, before it, has the seconds.
const W = Number(devices.value), causal = mask.value === "causal", zigzag = split.value === "zigzag";
step.end = W;
if (step.value > W) {
  step.value = W;
  return;
}
const t = step.value - 1, all = Array.from({ length: W }, (_, r) => r);

const shape = { world: W, causal, zigzag, tokens: 2 ** tokens.value, width, itemsize, flops, latency, bandwidth: 1e9 * 10 ** speed.value };
const { compute, send, bytes, lasts, starts, total, busy: busy_time } = ring_times(shape);
const longest = compute.map((row) => Math.max(...row)), count = zigzag ? 2 * W : W;

// The ring, rank 0 on top and the next one clockwise; a block that has moved on by so many places.
const on_circle = (place, radius) => [radius * Math.sin((2 * Math.PI * place) / W), radius * Math.cos((2 * Math.PI * place) / W)];
const columns = (points, more) => ({ x: points.map(([x]) => x), y: points.map(([, y]) => y), ...more });
const unit_length = circle.inner_width / 2.84; // pixels
const disc = Math.min(32, 0.45 * unit_length, 1.02 * unit_length * Math.sin(Math.PI / W)), box = Math.min(39, 0.48 * unit_length);
blocks.data = columns(all.map((r) => on_circle(r + t, 1.18)), { name: all.map((r) => `KV${r}`), size: all.map(() => box) });
const computes = all.map((r) => compute[t][r] > 0);
ranks.data = columns(all.map((r) => on_circle(r, 0.6)), {
  name: all.map((r) => `Q${r}`),
  size: all.map(() => disc),
  colour: computes.map((one) => (one ? filled : empty)[0]),
  ink: computes.map((one) => (one ? filled : empty)[1]),
});
const between = t < W - 1 ? all.map((r) => r + 0.5) : [];
hops.data = columns(between.map((place) => on_circle(place, 1.18)), { angle: between.map((place) => (-2 * Math.PI * place) / W - Math.PI / 2) });

// The table: pieces of the sequence from left to right and from top to bottom, with the ranks that have them.
const rank_of = (piece) => (piece < W ? piece : 2 * W - 1 - piece);
const when = (a, b) => (rank_of(a) - rank_of(b) + W) % W; // the step, from 0, in which queries a meet keys b
const cells = Array.from({ length: count ** 2 }, (_, k) => [Math.floor(k / count), k % count]).filter(([a, b]) => !causal || b <= a);
tiles.data = {
  x: cells.map(([, b]) => b + 0.5),
  y: cells.map(([a]) => a + 0.5),
  colour: cells.map(([a, b]) => (when(a, b) === t ? busy : seen_colour)),
  alpha: cells.map(([a, b]) => (when(a, b) === t ? 0.9 : when(a, b) < t ? 0.55 : 0)),
};
const edge = 0.06 * count, pixels = square.inner_width / (count + 2 * edge);
const pieces = Array.from({ length: count }, (_, k) => k).filter((k) => pixels > 11 || k % 2 === 0); // as many as there is room for
names.data = {
  x: [...pieces.map((k) => k + 0.5), ...pieces.map(() => -edge)],
  y: [...pieces.map(() => -edge), ...pieces.map((k) => k + 0.5)],
  name: [...pieces, ...pieces].map((k) => String(rank_of(k))),
};
square.x_range.setv({ start: -2 * edge, end: count + 0.02 * count });
square.y_range.setv({ start: count + 0.02 * count, end: -2 * edge });

// Bars in milliseconds: what is over is paler, what is to come is faint.
const shade = (at) => (at === t ? 1 : at < t ? 0.5 : 0.16);
const bars = (kind, shift, from, to) => { // those of the step itself first, which the legend shows
  const steps = [t, ...all.filter((at) => at !== t)];
  const of = steps.flatMap((at) => all.map((r) => [at, r, from(at, r), to(at, r)])).filter(([, , a, b]) => b - a > 1e-9 * total);
  kind.data = {
    y: of.map(([, r]) => r + shift),
    left: of.map(([at, , a]) => 1e3 * (starts[at] + a)),
    right: of.map(([at, , , b]) => 1e3 * (starts[at] + b)),
    alpha: of.map(([at]) => shade(at)),
  };
};
bars(computing, -0.2, () => 0, (at, r) => compute[at][r]);
bars(waiting, -0.2, (at, r) => compute[at][r], (at) => lasts[at]);
bars(sending, 0.2, () => 0, (at) => (at < W - 1 ? send : 0));
ends.data = { x: starts.map((start, at) => 1e3 * (start + lasts[at])) };
timeline.x_range.setv({ start: 0, end: 1.01e3 * total });
timeline.y_range.setv({ start: W - 0.4, end: -0.6 });
timeline.left[0].ticker.ticks = all;

const rounded = (number) => (number >= 100 ? number.toFixed(0) : number.toPrecision(3));
const unit = (number, units) => {
  const [scale, name] = units.find(([least]) => number >= least) ?? units.at(-1);
  return `${rounded(number / scale)} ${name}`;
};
const time = (seconds) => unit(seconds, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]);
const size = (amount) => unit(amount, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]);
const many = computes.filter(Boolean).length, waits = W - many;
const who = waits === 0 ? (W === 2 ? "both devices compute" : `all ${W} devices compute`) : many === 1 ? "one device computes" : `${many} devices compute`;
const others = waits === 0 ? "" : waits === 1 ? ", one waits" : `, ${waits} wait`;
const hidden = send <= longest[t] ? "which hides behind computing" : "longer than computing";
const sent = t === W - 1 ? " Nothing is sent any more." : ` Each sends ${size(bytes)} in ${time(send)}, ${hidden}.`;
const least = Math.min(...longest.slice(0, -1)); // of the steps with something to send
const from = least > latency ? `All of the sending hides from ${rounded(bytes / (least - latency) / 1e9)} GB/s on.`
  : "The latency alone is longer than computing.";
words.text = `Step ${t + 1} of ${W}: ${who} for ${time(longest[t])}${others}.${sent} The ${W} steps take ${time(total)}.` +
  ` A device computes ${(100 * busy_time / total).toPrecision(3)}% of that, on average, and sends ${size((W - 1) * bytes)}. ${from}`;
