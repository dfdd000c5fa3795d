// A model of the reader's own: a file that examples/writer.py or attnbook_course.live.models has written is checked before the
// page runs it. An error says what is wrong with another one.
const MOST_BYTES = 64e6;
const SIZES = ["vocab_size", "max_length", "embed_dim", "num_heads", "mlp_dim", "num_layers"];
const BYTES = { F16: 2, F32: 4 }; // of a number
const OPTIONS = { // what decoder.js can run; the first is meant where nothing is said
  norm: ["pre", "post"], activation: ["gelu", "relu"], bias: [true, false], rms_norm: [false], eps: [1e-5], tied: [false],
  attention: ["softmax"], rotary_base: [null],
};
const refuse = (words) => { throw new Error(words); };

function shapes_of({ vocab_size, max_length, embed_dim, mlp_dim, num_layers, bias }) { // of every parameter, by its name
  const shapes = { "embedding.weight": [vocab_size, embed_dim], position: [max_length, embed_dim] };
  const add = (name, ...shape) => {
    shapes[`${name}.weight`] = shape;
    if (bias) shapes[`${name}.bias`] = [shape[0]];
  };
  for (let n = 0; n < num_layers; n++) {
    for (const norm of ["attention_norm", "mlp_norm"]) add(`decoder.${n}.${norm}`, embed_dim);
    for (const part of ["query", "key", "value", "output"]) add(`decoder.${n}.attention.${part}`, embed_dim, embed_dim);
    add(`decoder.${n}.mlp.hidden`, mlp_dim, embed_dim);
    add(`decoder.${n}.mlp.output`, embed_dim, mlp_dim);
  }
  add("decoder_norm", embed_dim);
  add("readout", vocab_size, embed_dim);
  return shapes;
}

function known_sizes(given, most) { // with the options; none is above what the file can hold
  const sizes = { num_kv_heads: given.num_heads, ...given };
  for (const name of SIZES)
    if (!Number.isInteger(sizes[name]) || sizes[name] < 1 || sizes[name] > most) refuse(`it says that its ${name} is ${sizes[name]}`);
  if (sizes.embed_dim % sizes.num_heads) refuse(`${sizes.num_heads} heads do not divide its width ${sizes.embed_dim}`);
  for (const [name, known] of Object.entries({ ...OPTIONS, num_kv_heads: [sizes.num_heads] })) {
    sizes[name] ??= known[0];
    if (!known.includes(sizes[name])) refuse(`the page cannot run a model whose ${name} is ${sizes[name]}`);
  }
  return sizes;
}

function checked(buffer) { // the model of a file's bytes
  const start = new Uint8Array(buffer);
  if (start[8] !== 123) refuse("it is not in the safetensors format, as examples/writer.py saves one"); // the header begins with {
  if (8 + Number(new DataView(buffer).getBigUint64(0, true)) > start.length) refuse("it is cut within its header");
  const damaged = (read) => { try { return read(); } catch { return refuse("its header is damaged"); } };
  const { about, places, begin } = damaged(() => parts_of(buffer));
  if (about?.kind !== "DecoderOnly") refuse("it is no language model as examples/writer.py saves one");
  if (!about.characters && !about.merges) refuse("it does not say which characters its tokens are");
  const names = Object.keys(places), room = start.length - begin;
  const sizes = known_sizes(damaged(() => ({ ...JSON.parse(about.sizes) })), room), { vocab_size, num_layers } = sizes;
  if (num_layers > names.length) refuse(`it says that it has ${num_layers} blocks`);
  const shapes = shapes_of(sizes), unknown = names.find((name) => !Object.hasOwn(shapes, name));
  if (unknown) refuse(`it has ${unknown}, which no DecoderOnly of its sizes has`);
  for (const [name, shape] of Object.entries(shapes)) {
    if (!places[name]) refuse(`it lacks ${name}`);
    if (`${places[name].shape}` !== `${shape}`) refuse(`${name} has the shape (${places[name].shape}), expected (${shape})`);
    if (!Object.hasOwn(BYTES, places[name].dtype)) refuse(`${name} has numbers of type ${places[name].dtype}, expected F16 or F32`);
  }
  const first = (name) => Number(places[name].data_offsets?.[0]);
  let end = 0; // the numbers follow each other without a gap
  for (const name of names.sort((a, b) => first(a) - first(b))) {
    const size = shapes[name].reduce((product, length) => product * length, BYTES[places[name].dtype]);
    if (`${places[name].data_offsets}` !== `${[end, end + size]}`) refuse(`its header is damaged where it says where ${name} is`);
    end += size;
  }
  if (end !== room) refuse(`it has ${start.length} bytes, expected ${begin + end}: ${room < end ? "a part is missing" : "something was added"}`);
  const infinite = names.find((name) => !numbers_of(buffer, begin, places[name]).every(Number.isFinite));
  if (infinite) refuse(`${infinite} has numbers that are not finite`);
  const model = damaged(() => ({ ...unpack(buffer), sizes }));
  model.tokenizer = damaged(() => (model.merges ? byte_pairs(model.merges) : single_characters(about.characters)));
  const distinct = new Set(model.tokenizer.tokens).size;
  if (distinct !== vocab_size || distinct !== model.tokenizer.tokens.length) refuse(`it names ${distinct} tokens, expected ${vocab_size}`);
  return model;
}

function single_characters(characters) { // each is a token; others are left out
  const tokens = [...characters], number = new Map(tokens.map((character, n) => [character, n]));
  return {
    tokens,
    encode: (text) => [...text].filter((one) => number.has(one)).map((one) => number.get(one)),
    decode: (numbers) => numbers.map((n) => tokens[n]).join(""),
    unknown: (text) => [...new Set(text)].filter((one) => !number.has(one)),
  };
}

async function open_model(file) {
  if (file.size > MOST_BYTES) refuse(`it has ${Math.round(file.size / 1e6)} MB, and the page opens at most ${MOST_BYTES / 1e6} MB`);
  const buffer = await file.arrayBuffer(), model = checked(buffer), { about, places, begin } = parts_of(buffer);
  if (!about.sha256 || !globalThis.crypto?.subtle) return model; // a page without https has none
  const numbers = Object.keys(places).sort().map((name) => places[name].data_offsets)
    .map(([from, to]) => new Uint8Array(buffer, begin + from, to - from)); // in the order of their names
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob(numbers).arrayBuffer()));
  const found = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return found === about.sha256 ? model : refuse("it is damaged: its numbers are not those that were saved");
}
