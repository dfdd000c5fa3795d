// Draws a live figure when the reader comes near it; live.html says which. Without this script its still stands.
const item = %ITEM%;
const host = document.getElementById(name), plots = document.getElementById(`${name}-plots`);
const [head, still, status] = [".attnbook-live-head", ".attnbook-still", "[role=status]"].map((one) => host.querySelector(one));
const root = document.documentElement.dataset.content_root; // the website sets it, notebooks do not
const files = ["bokeh", "bokeh-widgets"];
const address = (file) => root === undefined
  ? `https://cdn.bokeh.org/bokeh/release/${file}-${version}.min.js` : `${root}_static/bokeh/${file}.min.js`;
const shared = (window.attnbookBokeh ??= { kept: {}, scripts: {} }); // by all figures of a page

// A button above the figure. The page has none before this script runs: without it nothing would happen.
function button(label, action) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: label, onclick: action });
  Object.assign(made.style, { padding: "0 0.6rem", minHeight: "2rem", font: "inherit", color: "inherit", background: "none",
    border: "1px solid", borderRadius: "3px", cursor: "pointer", marginLeft: head.querySelector("button") ? "" : "auto" });
  head.append(made);
  return made;
}

// What the figure needs is fetched once the page rests, and run when the reader comes near: by then there may be no network.
function keep() {
  const { saveData, effectiveType } = navigator.connection ?? {};
  if (root === undefined || location.protocol === "file:" || saveData || /2g/.test(effectiveType)) return;
  still.querySelector("img")?.setAttribute("loading", "eager");
  for (const file of files)
    shared.kept[file] ??= fetch(address(file), { priority: "low" })
      .then((answer) => (answer.ok ? answer.blob() : Promise.reject(answer.status)))
      .then((blob) => URL.createObjectURL(blob))
      .catch(() => { delete shared.kept[file]; });
}
const idle = window.requestIdleCallback ?? ((task) => setTimeout(task, 2000));
if (document.readyState === "complete") idle(keep);
else window.addEventListener("load", () => idle(keep));

const run = (src) => new Promise((resolve, reject) => {
  document.head.append(Object.assign(document.createElement("script"), { src, onload: resolve, onerror: reject }));
});
const load = (file) => (shared.scripts[file] ??= Promise.resolve(shared.kept[file])
  .then((kept) => run(kept ?? address(file)))
  .catch((error) => { delete shared.scripts[file]; throw error; }));

// Bokeh gives its sliders' handles no name and a number that is not the one shown, and its plots a tab stop for nothing.
function dress(node) {
  for (const element of node.querySelectorAll("*")) if (element.shadowRoot) dress(element.shadowRoot);
  for (const layer of node.querySelectorAll(".bk-events")) layer.removeAttribute("tabindex");
  const say = () => {
    const [label, ...value] = node.querySelector(".bk-slider-title").textContent.split(": ");
    const handle = node.querySelector("[role=slider]"), said = { "aria-label": label, "aria-valuetext": value.join(": ") };
    for (const [key, text] of Object.entries(said)) if (handle.getAttribute(key) !== text) handle.setAttribute(key, text);
  };
  if (!node.querySelector("[role=slider]")) return;
  say();
  const changes = { subtree: true, childList: true, characterData: true, attributeFilter: ["aria-valuetext"] };
  new MutationObserver(say).observe(node, changes);
}

// A screen reader hears the sentences that changed, once the handle rests.
function announce(texts) {
  const changed = new Set();
  let timer;
  for (const text of texts)
    text.properties.text.change.connect(() => {
      changed.add(text);
      clearTimeout(timer);
      timer = setTimeout(() => {
        status.textContent = texts.filter((one) => changed.has(one) && one.visible).map((one) => one.text).join(" ");
        changed.clear();
      }, 600);
    });
}

// The plots as they stand and the sentence, on white.
function save(view, sentence) {
  const views = [...window.Bokeh.index.query((one) => one.model.type === "Figure" && one.root === view)];
  const boxes = views.map((one) => one.el.getBoundingClientRect()), edge = 12, line = 22;
  const [left, top] = ["left", "top"].map((side) => Math.min(...boxes.map((box) => box[side])) - edge);
  const [right, bottom] = ["right", "bottom"].map((side) => Math.max(...boxes.map((box) => box[side])) + edge);
  const canvas = document.createElement("canvas"), context = canvas.getContext("2d"), ratio = window.devicePixelRatio;
  const font = () => { Object.assign(context, { font: "15px sans-serif", fillStyle: "#222" }); };
  font();
  const lines = [host.querySelector("strong").textContent, ""];
  for (const word of sentence.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (context.measureText(longer).width <= right - left - 2 * edge) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  const head = edge + line * lines.length;
  Object.assign(canvas, { width: ratio * (right - left), height: ratio * (bottom - top + head) });
  context.scale(ratio, ratio);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  font();
  lines.forEach((text, i) => context.fillText(text, edge, edge + line * (i + 0.7)));
  views.forEach((one, i) => {
    const { canvas: drawn } = one.export("png"), { x, y, width, height } = boxes[i];
    context.drawImage(drawn, x - left, y - top + head, width, height);
  });
  canvas.toBlob((blob) => {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `${name}.png` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
}

async function start() {
  for (const file of files) await load(file);
  item.target_id = plots.id;
  const [view] = [...await window.Bokeh.embed.embed_item(item)];
  const find = (one) => view.model.document.get_model_by_name(one);
  await find("update").execute(view.model);
  dress(plots);
  announce(["notice", "said", "words"].map(find).filter(Boolean));
  hold(view);
  widen(view);
  button("save as PNG", () => save(view, find("words").text));
}

let state = "waiting";
async function draw() {
  if (state === "drawn") return;
  state = "drawn";
  plots.replaceChildren();
  for (const old of head.querySelectorAll("button")) old.remove();
  plots.style.cssText = "position: absolute; inset-inline: 0; visibility: hidden"; // the still stands until all is drawn
  try {
    await start();
    still.hidden = true;
    host.dataset.ready = "true";
  } catch (error) {
    console.error(error);
    state = "failed";
    plots.textContent = "The live figure could not load. It tries again when the network is back.";
    button("try again", draw);
  }
  plots.style.cssText = host.style.minHeight = "";
}
if (new URLSearchParams(location.search).get("wide") === name) draw();
window.addEventListener("online", () => (state === "failed" ? draw() : keep()));
new IntersectionObserver((entries, observer) => {
  if (!entries.some((entry) => entry.isIntersecting)) return;
  observer.disconnect();
  draw();
}, { rootMargin: "400px" }).observe(host);
