// A stored model: attnbook_course.live.models.pack writes the file, in the safetensors format with float16 numbers.
function unpack(buffer) { // model.decoder[0].attention.query.weight and so on, as in Python, each a Float32Array
  const view = new DataView(buffer), length = Number(view.getBigUint64(0, true));
  const { __metadata__, ...parameters } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const model = { sizes: JSON.parse(__metadata__.sizes), merges: JSON.parse(__metadata__.merges ?? "null") };
  for (const [name, { data_offsets: [from, to] }] of Object.entries(parameters)) {
    const path = name.split("."), last = path.pop();
    const owner = path.reduce((node, part) => (node[part] ??= {}), model);
    owner[last] = new Float32Array((to - from) / 2).map((_, i) => half(view.getUint16(8 + length + from + 2 * i, true)));
  }
  model.decoder = Object.values(model.decoder);
  return model;
}

// The model from the page's own host, asked for once; null where there is none, and then the text says why.
const loaded = (name) => window.attnbookModels?.[name];
function load_model(name, ...shown) {
  const asked = (window.attnbookAsked ??= {});
  return (asked[name] ??= fetch_model(name, ...shown).finally(() => { delete asked[name]; }));
}

async function fetch_model(name, button, text, instead) {
  const root = document.documentElement.dataset.content_root; // the website sets it, notebooks do not
  if (root === undefined || location.protocol === "file:") {
    text.setv({ text: `Only the book's website can load the model. ${instead}`, visible: true });
    return null;
  }
  const { label } = button;
  button.setv({ label: "Loading …", disabled: true });
  try {
    const answer = await fetch(`${root}_static/models/${name}.bin`, { cache: "no-cache" });
    if (!answer.ok) throw new Error(`the host answers ${answer.status}`);
    const model = unpack(await answer.arrayBuffer());
    text.visible = false;
    return ((window.attnbookModels ??= {})[name] = model);
  } catch (error) {
    text.setv({ text: `The model could not be loaded: ${error.message}. ${instead}`, visible: true });
    return null;
  } finally {
    button.setv({ label, disabled: false });
  }
}
