// A stored model: attnbook_course.live.models.pack writes the file, in the safetensors format.
function parts_of(buffer) { // what the header says of the model and of each parameter, and where the numbers begin
  const begin = 8 + Number(new DataView(buffer).getBigUint64(0, true));
  const { __metadata__: about, ...places } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, begin - 8)));
  return { about, places, begin };
}

function numbers_of(buffer, begin, { dtype, data_offsets: [from, to] }) {
  const bytes = new Uint8Array(buffer, begin + from, to - from).slice().buffer; // a copy: they may begin at any byte
  return dtype === "F32" ? new Float32Array(bytes) : Float32Array.from(new Uint16Array(bytes), half);
}

function unpack(buffer) { // model.decoder[0].attention.query.weight and so on, as in Python, each a Float32Array
  const { about, places, begin } = parts_of(buffer);
  const model = { sizes: JSON.parse(about.sizes), merges: JSON.parse(about.merges ?? "null"), characters: about.characters };
  for (const [name, place] of Object.entries(places)) {
    const path = name.split("."), last = path.pop();
    const owner = path.reduce((node, part) => (node[part] ??= {}), model);
    owner[last] = numbers_of(buffer, begin, place);
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
