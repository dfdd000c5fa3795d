// Ring attention's seconds, by step and rank: the numbers of attnbook.distributed.traffic's seconds, ring, causal_imbalance and
// ring_efficiency.
function ring_times({ world, causal, zigzag, tokens, width, itemsize, flops, latency, bandwidth }) {
  const ranks = Array.from({ length: world }, (_, r) => r);
  const pieces_of = (r) => (zigzag ? [r, 2 * world - 1 - r] : [r]); // of the sequence
  const share = (r, other) => { // of the pairs of their pieces that the mask leaves
    const pairs = pieces_of(r).flatMap((a) => pieces_of(other).map((b) => !causal || b <= a));
    return pairs.filter(Boolean).length / pairs.length;
  };
  const length = tokens / world, whole = (4 * length ** 2 * width) / flops, bytes = 2 * length * width * itemsize;
  const compute = ranks.map((at) => ranks.map((r) => whole * share(r, (r - at + world) % world))); // rank r has that rank's block
  const send = latency + bytes / bandwidth;
  const lasts = compute.map((row, at) => Math.max(...row, at < world - 1 ? send : 0));
  const starts = lasts.map((_, at) => lasts.slice(0, at).reduce((a, b) => a + b, 0));
  const total = starts.at(-1) + lasts.at(-1), busy = compute.flat().reduce((a, b) => a + b, 0) / world;
  return { compute, send, bytes, lasts, starts, total, busy };
}
