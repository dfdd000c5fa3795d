// A published model in the page's own worker reads the reader's text: what comes next, with heads and without them.
// heads_of_model.js, after it, draws the heads.
const site = document.documentElement.dataset.content_root; // the website sets it, notebooks do not
const state = ((window.attnbookAsking ??= {})[figure] ??= { cut: [], moved: null });
const clicked = cb_obj.event_name === "button_click" ? cb_obj.origin : null;
const file_is_here = site !== undefined && location.protocol !== "file:" && "model" in document.getElementById(figure).dataset;
const redraw = (from) => matrix.document.get_model_by_name("update").execute(from);
const chosen_now = () => [layer.value, head.value], same = ([l, h]) => l === layer.value && h === head.value;

function end(reason) { // of the worker, and of all that it keeps
  state.worker?.terminate();
  Object.assign(state, { worker: null, ready: false, scanning: false });
  if (reason) notice.setv({ text: `The model could not be loaded: ${reason}. ${instead}`, visible: true });
  label();
}

function label(share) {
  ask.label = state.ready ? "ask" : state.worker ? `loading … ${Math.round(100 * (share ?? 0))} %: stop` : `load the model (${Math.round(bytes / 1e6)} MB) and ask`;
  cut.label = state.cut.some(same) ? "put this head back" : "cut this head";
  whole.disabled = state.cut.length === 0;
  scan.label = state.scanning ? "stop" : "cut each head in turn";
}

function begin() {
  if (navigator.deviceMemory < 2) return end("this device has too little memory");
  notice.visible = false;
  state.worker = new Worker(`${site}_static/models/model_worker.js`);
  state.worker.onmessage = ({ data: { kind, ...data } }) => heard[kind](data);
  state.worker.onerror = ({ message }) => end(message || "its script did not come");
  state.worker.postMessage({ kind: "load", name: stored, bytes, sha256 });
  label();
}

const question = () => state.worker.postMessage({ kind: "ask", text: own.value, cut: state.cut, most });
const heard = {
  loading: ({ share }) => label(share),
  loaded: () => {
    state.ready = true;
    label();
    question();
  },
  failed: ({ words }) => end(words),
  said: ({ tokens, weights, left, next, best, moved }) => {
    state.scanning = false;
    if (weights) {
      const n = tokens.length, height = Math.min(600, n * Math.min(20, Math.max(13, Math.floor(320 / n))));
      const same_text = tokens.join() === cases.data.tokens[0].join(); // then its chosen token stays
      cases.data = { tokens: [tokens], units: [Uint8Array.from(weights, (w) => Math.round(255 * w))], height: [height] };
      state.moved = null;
      if (measure.value === "cut") measure.value = "first";
      redraw(same_text ? layer : cases);
    }
    show(next, best, moved, left);
    label();
  },
  cut: ({ moved, left }) => {
    Object.assign(state, { moved, scanning: left > 0 });
    if (measure.value === "cut") redraw(measure);
    else measure.value = "cut"; // which draws
    label();
  },
};

function show(next, best, moved, left) {
  const less = state.cut.length > 0;
  bars.data = { y: next.map((_, k) => k + 1), whole: next.map((one) => one.whole), cut: next.map((one) => (less ? one.cut : NaN)) };
  across_bars.axis_label = `probability${less ? " (thin: with heads cut)" : " of the next token"}`;
  labels.major_label_overrides = new Map(next.map(({ text }, k) => [k + 1, as_signs(text)]));
  const told = next.slice(0, 2).map(({ text, whole: p }) => `'${as_signs(text)}' ${p.toFixed(2)}`).join(", then ");
  const names = state.cut.map((one) => one.join(".")).join(", ");
  const without = less ? ` Without ${state.cut.length > 1 ? "the heads" : "head"} ${names} it is '${as_signs(best.text)}' ${best.cut.toFixed(2)}; ${moved.toFixed(2)} of the probability has moved.` : "";
  said.text = `The most probable next token is ${told}.${without}${left ? ` The text is long: its last ${left} tokens are not read.` : ""}`;
}

if (!file_is_here && cb_obj.type === "Column") { // nothing here can be asked
  for (const one of [own, ask, cut, whole, scan]) one.visible = false;
  measure.options = measure.options.filter(([value]) => value !== "cut");
  notice.setv({ visible: true, text: `Of one stored sentence. To have a text of yours read, give your copy of the site the model's file: make model, then make book. ${instead}` });
}
if (clicked === cut && state.ready) state.cut = state.cut.some(same) ? state.cut.filter((one) => !same(one)) : [...state.cut, chosen_now()];
if (clicked === whole) state.cut = [];
if (clicked === scan && state.ready) {
  state.scanning = !state.scanning;
  state.worker.postMessage({ kind: state.scanning ? "scan" : "rest" });
  return label();
}
if ([ask, cut, whole, scan].includes(clicked) || cb_obj === own) {
  if (state.ready) question();
  else if (clicked === ask && state.worker) end(); // the reader has stopped it
  else if (clicked && !state.worker) begin();
  return label();
}
label();
