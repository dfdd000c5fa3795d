// Controls beside the plots, which then fill the height of the window: on slides, whose page asks for it.
const BESIDE = 860; // pixels from which there is room for both
const WIDTH = 340; // of the controls
const LEAST = 0.6; // of their own size, the smallest that controls are drawn in
const TYPE = 0.018; // of the window's width: 20 of the 720 pixels of a slide, and more

function widen(view) {
  if (host.dataset.layout !== "wide") return;
  const [column, controls] = view.child_views.map((one) => one.el);
  const rows = [view, ...view.child_views.flatMap((one) => one.child_views)].filter(({ model }) => /^(Row|Column)$/.test(model.type));
  const sizes = figures_of(view).map(({ el, model }) => {
    const key = model.aspect_ratio ? "max_width" : model.frame_height === null ? "height" : "frame_height";
    return { el, model, key, natural: model[key] };
  });
  const set = (scale) => {
    for (const one of sizes) {
      one.set = Math.round(scale * one.natural); // before the change is told
      one.model[one.key] = one.set;
    }
  };
  const letters = [...view.model.references()].flatMap((model) => Object.keys(model.attributes)
    .filter((key) => /text_font_size$/.test(key) && /px"/.test(JSON.stringify(model[key])))
    .map((key) => ({ model, key, natural: model[key] })));
  const size_of_type = host.style.getPropertyValue("--bokeh-font-size");
  const type = (pixels) => { // of plots and controls; none: as on a page
    for (const { model, key, natural } of letters)
      model[key] = !pixels ? natural : typeof natural === "string" ? `${pixels}px` : { ...natural, value: `${pixels}px` };
    host.style.setProperty("--bokeh-font-size", pixels ? `${pixels}px` : size_of_type);
  };
  const total = (size) => { // of the figures below each other; those beside each other count once
    const lines = {};
    for (const one of sizes) lines[Math.round(one.el.getBoundingClientRect().top)] = size(one);
    return Object.values(lines).reduce((sum, height) => sum + height, 0);
  };
  const zoom = (share) => { // in a column as wide as before
    controls.style.zoom = share;
    for (const side of ["width", "flex-basis"]) {
      if (share === 1) controls.style.removeProperty(side);
      else controls.style.setProperty(side, `${WIDTH / share}px`, "important");
    }
  };

  let wide = false, typed = 0;
  function fit() { // axes, titles and scales keep their size; the rest shares what the window has left
    const asked = host.clientWidth >= BESIDE;
    if (wide !== asked) {
      wide = asked;
      for (const { model } of rows) model.css_classes = [...model.css_classes.filter((one) => one !== "wide"), ...(wide ? ["wide"] : [])];
      set(1);
      zoom(1);
    }
    const pixels = wide ? Math.ceil(Math.max(16, TYPE * window.innerWidth)) : 0;
    if (typed !== pixels) type((typed = pixels));
    if (!wide) return;
    const room = window.innerHeight - plots.getBoundingClientRect().top - window.scrollY - 16;
    const kept = column.offsetHeight - total(({ el, model, key }) => (key === "frame_height" ? model.frame_height : el.offsetHeight));
    set(Math.min(2, Math.max(0.3, (room - kept) / total(({ natural }) => natural))));
    const { height } = controls.getBoundingClientRect(); // only ever smaller: nothing moves back and forth under the pointer
    if (height > room) zoom(Math.max(LEAST, ((controls.style.zoom || 1) * room) / height));
  }
  for (const one of sizes) // a script has given an example its own height
    one.model.properties[one.key].change.connect(() => {
      if (one.model[one.key] !== one.set) one.natural = one.model[one.key];
    });
  for (const element of [host, column, controls]) new ResizeObserver(() => requestAnimationFrame(fit)).observe(element);
}
