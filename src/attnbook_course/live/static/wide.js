// Controls beside the plots, which then fill the height of the window: on slides, and when the reader asks for it.
const BESIDE = 860; // pixels from which there is room for both
const MARGIN = 16;
const WIDTH = 340; // of the controls
const LEAST = 0.6; // of their own size, the smallest that controls are drawn in
const FILLING = { position: "fixed", inset: "0", zIndex: "2000", overflow: "auto", padding: `${MARGIN}px` };

function widen(view) {
  const [column, controls] = view.child_views.map((one) => one.el);
  const rows = [view, ...view.child_views.flatMap((one) => one.child_views)].filter(({ model }) => /^(Row|Column)$/.test(model.type));
  const sizes = figures_of(view).map(({ el, model }) => {
    const key = model.aspect_ratio ? "max_width" : model.frame_height === null ? "height" : "frame_height";
    return { el, model, key, natural: model[key] };
  });
  const now = ({ el, model, key }) => (key === "frame_height" ? model.frame_height : el.offsetHeight);
  const total = (size) => { // of the figures below each other; those beside each other count once
    const lines = new Map();
    for (const one of sizes) {
      const top = Math.round(one.el.getBoundingClientRect().top);
      lines.set(top, Math.max(lines.get(top) ?? 0, size(one)));
    }
    return [...lines.values()].reduce((sum, height) => sum + height, 0);
  };
  const set = (scale) => {
    for (const one of sizes) {
      one.set = Math.round(scale * one.natural); // before the change is told
      one.model[one.key] = one.set;
    }
  };

  // Controls that are higher than their room, in another font, with a third head, below a longer sentence, are drawn
  // smaller, in a column as wide as before. They stay so until the window changes: nothing moves under the pointer.
  let share = 1, fitted = "";
  function draw(at) {
    share = at;
    controls.style.zoom = share === 1 ? "" : share;
    for (const name of ["width", "flex-basis"])
      if (share === 1) controls.style.removeProperty(name);
      else controls.style.setProperty(name, `${WIDTH / share}px`, "important");
  }
  function shrink(room) {
    const size = `${window.innerWidth} ${window.innerHeight}`;
    if (size !== fitted && share !== 1) draw(1);
    fitted = size;
    while (share > LEAST && controls.getBoundingClientRect().height > room) draw(Math.round(100 * share - 4) / 100);
  }

  let wide = false;
  function fit() { // axes, titles and scales keep their size; the rest shares what the window has left
    const asked = host.dataset.layout === "wide" && host.clientWidth >= BESIDE;
    if (wide !== asked) {
      wide = asked;
      for (const { model } of rows) model.css_classes = [...model.css_classes.filter((one) => one !== "wide"), ...(wide ? ["wide"] : [])];
      if (!wide) {
        set(1);
        draw(1);
      }
    }
    if (!wide) return;
    const { marginTop, marginBottom } = getComputedStyle(document.body);
    const edge = filling ? 2 * MARGIN : parseFloat(marginTop) + parseFloat(marginBottom);
    const room = window.innerHeight - head.offsetHeight - edge - MARGIN, kept = column.offsetHeight - total(now);
    set(Math.min(2, Math.max(0.3, (room - kept) / total(({ natural }) => natural))));
    shrink(room);
  }
  for (const one of sizes) // a script has given an example its own height
    one.model.properties[one.key].change.connect(() => {
      if (one.model[one.key] !== one.set) one.natural = one.model[one.key];
    });
  for (const element of [host, column]) new ResizeObserver(() => requestAnimationFrame(fit)).observe(element);
  const given = host.dataset.layout ?? "";
  const toggle = button("", async () => {
    if (!filling) {
      fill(true);
      await host.requestFullscreen?.().catch(() => {}); // where a frame does not allow it, the figure fills the frame
    } else if (document.fullscreenElement) await document.exitFullscreen();
    else fill(false);
  });
  let filling;
  function fill(whole) {
    filling = whole;
    host.dataset.layout = whole ? "wide" : given;
    const { backgroundColor } = getComputedStyle(document.body);
    Object.assign(host.style, whole ? { ...FILLING, backgroundColor }
      : { ...Object.fromEntries(Object.keys(FILLING).map((key) => [key, ""])), position: "relative", backgroundColor: "" });
    toggle.textContent = whole ? "leave full screen" : "full screen";
    fit();
  }
  fill(new URLSearchParams(location.search).get("wide") === name);
  document.addEventListener("fullscreenchange", () => { if (filling && !document.fullscreenElement) fill(false); });
  host.addEventListener("keydown", ({ key }) => { if (filling && key === "Escape") fill(false); });
  const resized = () => {
    toggle.hidden = window.innerWidth < BESIDE;
    fit();
  };
  resized();
  window.addEventListener("resize", resized);
}
