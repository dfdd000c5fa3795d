// A plan of many devices as bars of memory and time, and what binds in a sentence. device_plan.js, before it, computes it.
const { models, devices: kinds } = JSON.parse(catalogue);
const power = (slider) => 2 ** slider.value;
const shapes = { ...models[model.value], sequence: power(sequence) };
const cluster = { ...kinds[device.value], devices: power(count), reached: reached.value / 100 };
const layout = {
  zero: Number(zero.value), recompute: recompute.value, micro_batches: power(micro_batches), overlap: true,
  ...Object.fromEntries(Object.entries({ heads, stages, ring, experts }).map(([key, menu]) => [key, Number(menu.value)])),
};
const wrong = undivided(shapes, power(batch), cluster.devices, layout);
const found = wrong ? null : device_plan(shapes, power(batch), cluster, layout);

// Bars one after the other, so that the last one ends at the sum; what hides lies paler, under the computing.
const short = (number) => Number(number.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
function bars(source, table, scale, unit) {
  const rows = Object.entries(table).map(([name, size]) => [name, size / scale]);
  const ends = rows.map((_, at) => rows.slice(0, at + 1).reduce((sum, [, size]) => sum + size, 0));
  source.data = {
    y: rows.map(([name]) => name),
    left: rows.map(([, size], at) => ends[at] - size),
    right: ends,
    text: rows.map(([, size]) => (size > 0 ? `${short(size)} ${unit}` : "")),
  };
  return ends;
}
const nothing = (kinds_of) => Object.fromEntries(kinds_of.map((kind) => [kind, 0]));
const memory_ends = bars(held, found?.memory ?? nothing(held_kinds), 1e9, "GB");
const time_ends = bars(spent, found?.seconds ?? nothing(spent_kinds), 1, "s");
const pale = Object.entries(found?.sending ?? {}).map(([name, all]) => [name, all - found.seconds[name]]).filter(([, size]) => size > 1e-6 * found.step);
hidden.data = { y: pale.map(([name]) => name), left: pale.map(([, size]) => Math.max(0, found.seconds.compute - size)), right: pale.map(() => found.seconds.compute) };
const room = cluster.memory / 1e9, fits = found && found.held <= cluster.memory;
limit.location = room;
// room on the right for the text of the last bars
above.x_range.setv({ start: 0, end: 1.35 * Math.max(room, memory_ends.at(-1)) });
below.x_range.setv({ start: 0, end: 1.35 * Math.max(time_ends.at(-1), 1e-9) });

const told = {
  compute: "computing", heads: "sums over heads", ring: "the ring", experts: "tokens on their way to experts",
  stages: "messages between stages", bubble: "the pipeline's bubble", copies: "what copies send",
};
const refused = {
  devices: "devices into those of one copy", heads: "heads into their ways", sequence: "a row's tokens into the ring",
  experts: "experts into their ways", copies: "copies into the experts' ways", batch: "the batch into whole rows of each micro-batch",
  layers: "blocks into stages",
};
const plural = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;
const percent = (share) => `${(100 * share).toFixed(1)}%`;
function sentence() {
  if (wrong) {
    const [what, whole, ways] = wrong;
    return `It does not divide: ${refused[what]}, ${whole.toLocaleString("en")} into ${ways.toLocaleString("en")}.`;
  }
  const { copies, rows, binds, seconds, step } = found;
  const each = layout.heads * layout.ring * layout.stages;
  const start = `${copies === 1 ? "One copy" : `${copies.toLocaleString("en")} copies`} of the model, ${plural(each, "device")} each; ` +
    `${plural(rows, "row")} per micro-batch. A device holds ${short(found.held / 1e9)} of ${short(room)} GB. `;
  if (!fits) {
    const largest = Object.entries(found.memory).reduce((a, b) => (b[1] > a[1] ? b : a));
    return `${start}Memory binds: it does not fit, and ${largest[0]} take most, ${short(largest[1] / 1e9)} GB.`;
  }
  const losses = Object.entries(seconds).filter(([name]) => name !== "compute");
  const [loss, lost] = losses.reduce((a, b) => (b[1] > a[1] ? b : a));
  const speed = `A step takes ${short(step)} s, ${short(found.tokens_per_second)} tokens per second; the model's own operations take ${percent(found.utilisation)} of the data sheet's. `;
  const many = ["heads", "experts", "stages"].includes(binds);
  const bound = `${told[binds][0].toUpperCase()}${told[binds].slice(1)} ${many ? "bind" : "binds"}`;
  return start + speed + (lost < 1e-3 * step ? `${bound}; all sending hides.`
    : binds === "compute" ? `${bound}; the largest loss is ${told[loss]}, ${percent(lost / step)} of the step.`
      : `${bound}, with ${percent(seconds[binds] / step)} of the step.`);
}
words.text = sentence();
