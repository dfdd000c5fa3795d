// Chapter 9's single head, torch.MultiHeadAttention(4, 1) with queries and keys of (1, x, x², 0) and values of (0, 0, 0, y): its
// loss, the gradient by hand, Adam, and random functions to learn from. gaussian_process.js, before it, has what these are drawn with.
const SIZES = { query: 12, query_bias: 4, key: 12, key_bias: 4, value: 4, value_bias: 4, output: 4, output_bias: 1 };
// Of query and key the first three columns, of value the last, of output the last row: the answer depends on nothing else.

// Numbers from 0 to 1 (Doty-Humphrey's sfc32), and normal ones (Box and Muller).
function generator(seed) {
  let [a, b, c, count] = [seed, 0, 0, 1];
  const even = () => {
    const sum = (a + b + count) | 0;
    count = (count + 1) | 0;
    [a, b, c] = [b ^ (b >>> 9), (c + (c << 3)) | 0, (((c << 21) | (c >>> 11)) + sum) | 0];
    return (sum >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < 12; i++) even(); // until the seed is in all of it
  return { even, normal: () => Math.sqrt(-2 * Math.log(1 - even())) * Math.cos(2 * Math.PI * even()) };
}

// A function of the process at points drawn evenly from [−1, 1]: the points, noisy values and true ones.
function draw_function(random, points, { length_scale, noise }) {
  const x = Float64Array.from({ length: points }, () => 2 * random.even() - 1);
  const L = factor(x, length_scale, 0), z = x.map(random.normal);
  const f = x.map((_, i) => dot(L[i], z, i + 1));
  return { x, f, y: f.map((value) => value + noise * random.normal()) };
}

// PyTorch's first parameters: even in [−1/√4, 1/√4].
const first_parameters = (random) => Object.fromEntries(
  Object.entries(SIZES).map(([name, size]) => [name, Float64Array.from({ length: size }, () => random.even() - 0.5)]));

// What the parameters come to: a score (1, x, x²) A (1, x', x'²)ᵀ, whose first column no softmax notices, and gain · average + shift.
const ROWS = [0, 1, 2, 3], POWERS = [0, 1, 2];
const with_bias = (weight, bias) => weight.map((value, k) => value + (k % 3 === 0 ? bias[k / 3] : 0));
function read_off({ query, query_bias, key, key_bias, value, value_bias, output, output_bias }) {
  const Q = with_bias(query, query_bias), K = with_bias(key, key_bias);
  const A = POWERS.map((r) => POWERS.map((c) => ROWS.reduce((sum, d) => sum + Q[3 * d + r] * K[3 * d + c], 0) / Math.sqrt(4)));
  return { A, Q, K, gain: dot(output, value), shift: dot(output, value_bias) + output_bias[0] };
}

// The weights of the first n points for a query, w_j ∝ exp(a x_j + b x_j²), and the average of their y.
function average(x, y, n, at, A, weights) {
  const [, a, b] = POWERS.map((c) => A[0][c] + A[1][c] * at + A[2][c] * at * at);
  let top = -Infinity, total = 0, sum = 0;
  for (let j = 0; j < n; j++) top = Math.max(top, (weights[j] = (a + b * x[j]) * x[j]));
  for (let j = 0; j < n; j++) total += weights[j] = Math.exp(weights[j] - top);
  for (let j = 0; j < n; j++) sum += (weights[j] /= total) * y[j];
  return sum;
}

// L = mean over functions and n of (gain · average of the first n − y_{n+1})², and its slope in each parameter.
function loss_and_gradient(parameters, functions) {
  const { A, Q, K, gain, shift } = read_off(parameters), { value, value_bias, output } = parameters;
  const dA = POWERS.map(() => [0, 0, 0]), pairs = functions[0].x.length - 1, count = functions.length * pairs;
  const weights = new Float64Array(pairs);
  let loss = 0, dgain = 0, dshift = 0;
  for (const { x, y } of functions)
    for (let n = 1; n <= pairs; n++) {
      const mean = average(x, y, n, x[n], A, weights), gap = gain * mean + shift - y[n], slope = (2 * gap) / count;
      loss += gap ** 2 / count;
      dgain += slope * mean;
      dshift += slope;
      let first = 0, second = 0; // of Σ_j dL/ds_j x_j and of x_j²; the softmax has dL/ds_j = slope · gain · w_j (y_j − mean)
      for (let j = 0; j < n; j++) {
        const pull = slope * gain * weights[j] * (y[j] - mean) * x[j];
        first += pull;
        second += pull * x[j];
      }
      for (const r of POWERS) {
        dA[r][1] += x[n] ** r * first;
        dA[r][2] += x[n] ** r * second;
      }
    }
  const dQ = Q.map((_, k) => dot(dA[k % 3], K.subarray(k - (k % 3), k - (k % 3) + 3)) / Math.sqrt(4));
  const dK = K.map((_, k) => POWERS.reduce((sum, r) => sum + Q[k - (k % 3) + r] * dA[r][k % 3], 0) / Math.sqrt(4));
  const constants = (d) => Float64Array.from(ROWS, (row) => d[3 * row]);
  const gradient = {
    query: dQ, query_bias: constants(dQ), key: dK, key_bias: constants(dK),
    value: output.map((o) => dgain * o), value_bias: output.map((o) => dshift * o),
    output: output.map((_, d) => dgain * value[d] + dshift * value_bias[d]), output_bias: Float64Array.of(dshift),
  };
  return { loss, gradient };
}

// Adam (Kingma and Ba, 2015), after a gradient whose norm is above 1 is scaled down to 1, as attnbook.torch.train with clip=1.
function adam_step({ parameters, mean, square, step }, gradient, rate) {
  const norm = Math.sqrt(Object.values(gradient).reduce((sum, part) => sum + dot(part, part), 0)), scale = Math.min(1, 1 / (norm + 1e-6));
  const [first, second] = [0.9, 0.999].map((beta) => 1 - beta ** (step + 1)); // both means begin with 0
  for (const [name, part] of Object.entries(parameters))
    part.forEach((_, k) => {
      const slope = scale * gradient[name][k];
      mean[name][k] += 0.1 * (slope - mean[name][k]);
      square[name][k] += 0.001 * (slope ** 2 - square[name][k]);
      part[k] -= ((rate / first) * mean[name][k]) / (Math.sqrt(square[name][k] / second) + 1e-8);
    });
}

// A training: attnbook.train.training.warm_cosine's rates, and new functions for each step.
const BATCH = 32, STEPS = 2000, WARMUP = 20;
const warm_cosine = (peak, t) => peak * Math.min(1, (t + 1) / WARMUP) * 0.5 * (1 + Math.cos((Math.PI * t) / STEPS));
function begin_training(seed) {
  const random = generator(seed), parameters = first_parameters(random);
  const zeros = () => Object.fromEntries(Object.entries(SIZES).map(([name, size]) => [name, new Float64Array(size)]));
  return { random, parameters, mean: zeros(), square: zeros(), step: 0 };
}
function train_step(training, peak, pairs, process) {
  const functions = Array.from({ length: BATCH }, () => draw_function(training.random, pairs + 1, process));
  const { loss, gradient } = loss_and_gradient(training.parameters, functions);
  adam_step(training, gradient, warm_cosine(peak, training.step));
  training.step += 1;
  return loss;
}
