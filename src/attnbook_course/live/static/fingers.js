// A finger that begins on a handle drags it; elsewhere it scrolls the page and changes nothing. A tap is a tap.
const REACH = 16; // pixels around a handle's middle
const TAP = 10; // pixels that a finger may move and still tap

const figures_of = (view) =>
  [...window.Bokeh.index.query((one) => one.model.type === "Figure" && one.root === view)];

function hold(view) {
  const fingers = new Map();
  const on_handle = ({ clientX, clientY }) => figures_of(view).some((one) => {
    const { left, top, right, bottom } = one.el.getBoundingClientRect();
    if (clientX < left || clientX > right || clientY < top || clientY > bottom) return false;
    const handles = [...one.renderer_views.values()].filter(({ model }) => model.name === "handle");
    return handles.some(({ glyph }) =>
      Array.from(glyph.sx).some((x, i) => Math.hypot(clientX - left - x, clientY - top - glyph.sy[i]) < REACH));
  });
  const listen = (kind, action) => plots.addEventListener(kind, action, { capture: true, passive: false });

  listen("pointerdown", (event) => {
    if (event.pointerType === "touch") fingers.set(event.pointerId, { ...at(event), held: on_handle(event) });
  });
  listen("pointermove", (event) => {
    if (fingers.get(event.pointerId)?.held === false) event.stopPropagation();
  });
  for (const kind of ["pointerup", "pointercancel"])
    listen(kind, (event) => {
      const finger = fingers.get(event.pointerId);
      fingers.delete(event.pointerId);
      if (kind === "pointercancel" || finger?.held !== false) return;
      if (Math.hypot(event.clientX - finger.x, event.clientY - finger.y) <= TAP) return;
      event.stopPropagation(); // a swipe that scrolled nothing
      const { pointerId, pointerType, isPrimary, clientX, clientY } = event;
      event.composedPath()[0].dispatchEvent(new PointerEvent("pointercancel",
        { pointerId, pointerType, isPrimary, clientX, clientY, bubbles: true, composed: true }));
    });
  listen("touchstart", (event) => {
    if ([...fingers.values()].some(({ held }) => held)) event.preventDefault(); // the page stays
    const classes = event.composedPath().flatMap((one) => [...(one.classList ?? [])]);
    // beside a slider's handle: a tap moves it, as the mouse event that follows does, and a swipe does not
    if (classes.includes("noUi-target") && !classes.includes("noUi-handle")) event.stopPropagation();
  });
}
const at = ({ clientX, clientY }) => ({ x: clientX, y: clientY });
