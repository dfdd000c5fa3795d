// What a step costs each device: the formulas of attnbook.distributed.plan and traffic, line by line. planner.js draws it.
const others = (size, world) => (size * (world - 1)) / world; // all-gather, reduce-scatter, all-to-all
const message_time = (messages, size, link) => messages * link.latency + size / link.bandwidth;
const itemsize = 2;

function kept_per_token(model, recompute) {
  if (recompute === "all") return 2 * model.width;
  return (15 + 19 * model.chosen) * model.width + (recompute === "none" ? 5 * model.heads * model.sequence : 0);
}

// The first thing that the layout does not divide: its name, how many there are, and into how many ways.
function undivided(model, batch, devices, layout) {
  const of_one = layout.heads * layout.ring * layout.stages, copies = Math.floor(devices / of_one);
  const wholes = [
    ["devices", devices, of_one],
    ["heads", model.heads, layout.heads],
    ["sequence", model.sequence, layout.ring],
    ["experts", model.experts, layout.experts],
    ["copies", copies, layout.experts],
    ["batch", batch, copies * layout.micro_batches * model.sequence || 1],
  ];
  const found = wholes.find(([, whole, ways]) => whole % ways || !whole);
  return found ?? (layout.stages > model.layers ? ["layers", model.layers, layout.stages] : null);
}

function device_plan(model, batch, cluster, layout) {
  const { heads: t, ring: r, stages: p, micro_batches: m, experts: e, zero, recompute } = layout;
  const copies = cluster.devices / (t * r * p), rows = batch / (copies * m * model.sequence);
  const near = (within, ranks) => within * ranks <= cluster.per_machine;
  const message_link = (within, ranks) => (near(within, ranks) ? cluster.inside : cluster.between);
  const shared_link = (within, ranks) => {
    if (near(within, ranks)) return cluster.inside;
    const cards = Math.max(1, Math.floor(cluster.per_machine / within));
    return { latency: cluster.between.latency, bandwidth: Math.min(cards * cluster.between.bandwidth, cluster.inside.bandwidth) };
  };
  // parameters of a device, the ranks that hold the same, and how many ranks lie between two of them
  const parts = [
    [(model.parameters - model.expert_parameters) / (t * p), copies * r, 1],
    [model.expert_parameters / (t * p * e), (copies * r) / e, e],
  ].filter(([parameters]) => parameters > 0);

  // Bytes.
  const bytes_each = { weights: 2, gradients: 2, optimizer: 12 }, divided_from = { weights: 3, gradients: 2, optimizer: 1 };
  const memory = {};
  for (const [kind, bytes] of Object.entries(bytes_each))
    memory[kind] = parts.map(([parameters, ranks]) => (bytes * parameters) / (zero >= divided_from[kind] ? ranks : 1)).reduce((a, b) => a + b, 0);
  const of_stage = model.layers / p, tokens = (rows * model.sequence) / (t * r);
  if (zero === 3) memory.weights += ((itemsize * Math.min(2, of_stage)) / of_stage) * parts.reduce((sum, [parameters]) => sum + parameters, 0);
  memory.activations = tokens * Math.min(m, p) * of_stage * kept_per_token(model, recompute);
  if (recompute === "all") memory.activations += tokens * kept_per_token(model, "attention");

  // Seconds.
  const active = model.parameters - model.expert_parameters * (1 - model.chosen / model.experts);
  const per_token = { products: 6 * active, attention: 12 * model.layers * model.sequence * model.width };
  const share = (rows * model.sequence * m) / (t * r * p * cluster.flops * cluster.reached);
  const attention = per_token.attention * share, once = per_token.products * share + attention;
  const scores = attention / 6;  // one product of six, which a kernel makes anew
  const more = { none: 0, attention: scores, all: once / 3 + scores }[recompute];
  const blocks = m * of_stage, forward = recompute === "all" ? 2 : 1;
  const seconds = { compute: once + more }, sending = {};
  const add = (name, ...sends) => { // each with the computing that it hides behind
    sending[name] = sends.reduce((sum, [send]) => sum + send, 0);
    seconds[name] = sends.reduce((sum, [send, behind]) => sum + (layout.overlap ? Math.max(0, send - behind) : send), 0);
  };
  const stream = (2 * rows * model.sequence * model.width * itemsize) / r, sums = (forward + 1) * blocks;
  add("heads", [message_time(sums * 4 * (t - 1), sums * 2 * others(stream, t), shared_link(1, t)), 0]);

  const key_width = (model.width * model.key_heads) / model.heads;
  const keys = (((itemsize * rows * model.sequence) / r) * key_width) / Math.min(t, model.key_heads);
  const next_one = message_link(t, r), meanwhile = (((r - 1) / r) * attention) / 3;
  const there = blocks * message_time(r - 1, 2 * (r - 1) * keys, next_one);
  const back = r > 1 ? blocks * message_time(r, (4 * (r - 1) + 2) * keys, next_one) : 0;
  add("ring", ...Array(forward).fill([there, meanwhile]), [back, 2 * meanwhile]);

  const here = itemsize * tokens * model.width, trips = e > 1 ? 2 * sums : 0;
  add("experts", [message_time(trips * (e - 1), trips * others(here * model.chosen, e), message_link(t * r, e)), 0]);
  const passed = p > 1 ? 2 * m : 0;
  add("stages", [message_time(passed, passed * here, message_link(t * r * copies, p)), 0]);
  seconds.bubble = (Object.values(seconds).reduce((a, b) => a + b, 0) * (p - 1)) / m;

  const passes = [[[0, 0], [2, 1]], [[1, 1], [1, 1]], [[1, 1], [1, m]], [[1, m], [2, m]]][zero], pieces = zero === 3 ? of_stage : 1;
  add("copies", ...passes.map(([count, times], back_again) => {
    const one = parts.map(([parameters, ranks, inner]) => message_time(
      count * pieces * (ranks - 1), count * others(itemsize * parameters, ranks), shared_link(t * inner, ranks)));
    const compute = back_again ? (2 * once) / 3 + more : once / 3;
    return [times * one.reduce((a, b) => a + b, 0), (times * compute) / m];
  }));

  const total = (table) => Object.values(table).reduce((a, b) => a + b, 0);
  const step = total(seconds), held = total(memory);
  const longest = Object.keys(seconds).reduce((a, b) => (seconds[b] > seconds[a] ? b : a));
  return {
    copies, rows, memory, seconds, sending, held, step,
    binds: held > cluster.memory ? "memory" : longest,
    tokens_per_second: batch / step,
    utilisation: ((per_token.products + per_token.attention) * batch) / (cluster.devices * cluster.flops * step),
  };
}
