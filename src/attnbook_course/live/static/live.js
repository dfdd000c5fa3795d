// Draws a live figure when the reader comes near it; live.html says which. Without this script its still stands.
const item = %ITEM%;
const host = document.getElementById(name), plots = document.getElementById(`${name}-plots`);
const [head, still, status] = [".attnbook-live-head", ".attnbook-still", "[role=status]"].map((one) => host.querySelector(one));
const root = document.documentElement.dataset.content_root; // the website sets it, notebooks do not
const address = (file) => root === undefined
  ? `https://cdn.bokeh.org/bokeh/release/${file}-${version}.min.js` : `${root}_static/bokeh/${file}.min.js`;

// A button above the figure. The page has none before this script runs: without it nothing would happen.
function button(label, action) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: label, onclick: action });
  Object.assign(made.style, { padding: "0 0.6rem", minHeight: "2rem", font: "inherit", color: "inherit", background: "none",
    border: "1px solid", borderRadius: "3px", cursor: "pointer", marginLeft: head.querySelector("button") ? "" : "auto" });
  head.append(made);
  return made;
}

const scripts = (window.attnbookBokeh ??= {}); // by all figures of a page
const run = (src) => new Promise((resolve, reject) => {
  document.head.append(Object.assign(document.createElement("script"), { src, onload: resolve, onerror: reject }));
});
const load = (file) => (scripts[file] ??= run(address(file)).catch((error) => { delete scripts[file]; throw error; }));

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

function save(view) { // the plots as they stand, on white
  const views = figures_of(view), boxes = views.map((one) => one.el.getBoundingClientRect()), ratio = window.devicePixelRatio;
  const [left, top] = ["left", "top"].map((side) => Math.min(...boxes.map((box) => box[side])));
  const [right, bottom] = ["right", "bottom"].map((side) => Math.max(...boxes.map((box) => box[side])));
  const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
  Object.assign(canvas, { width: ratio * (right - left), height: ratio * (bottom - top) });
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  views.forEach((one, i) => {
    context.drawImage(one.export("png").canvas, ratio * (boxes[i].left - left), ratio * (boxes[i].top - top));
  });
  Object.assign(document.createElement("a"), { href: canvas.toDataURL(), download: `${name}.png` }).click();
}

async function start() {
  for (const file of ["bokeh", "bokeh-widgets"]) await load(file);
  item.target_id = plots.id;
  const [view] = [...await window.Bokeh.embed.embed_item(item)];
  const find = (one) => view.model.document.get_model_by_name(one);
  await find("update").execute(view.model);
  dress(plots);
  announce(["notice", "said", "words"].map(find).filter(Boolean));
  hold(view);
  widen(view);
  button("save as PNG", () => save(view));
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
window.addEventListener("online", () => { if (state === "failed") draw(); });
new IntersectionObserver((entries, observer) => {
  if (!entries.some((entry) => entry.isIntersecting)) return;
  observer.disconnect();
  draw();
}, { rootMargin: "400px" }).observe(host);
