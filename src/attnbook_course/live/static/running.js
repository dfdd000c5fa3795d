// What runs on its own, while the reader can see it and has pressed nothing else.
const at_once = matchMedia("(prefers-reduced-motion: reduce)").matches;

// A button with another label is drawn anew, a moment later: a reader who is on it by key stays on it.
function relabel(button, label) {
  const root = window.Bokeh.index.find_one(button)?.el.shadowRoot, held = root?.activeElement;
  button.label = label;
  if (held) requestAnimationFrame(() => {
    if (document.activeElement === document.body) root.querySelector("button").focus({ preventScroll: true });
  });
}

// Calls `step` again and again, so many milliseconds apart, until it returns false or a later call takes over.
const turns = (window.attnbookTurns ??= {});
function end_run(figure) {
  turns[figure] = (turns[figure] ?? 0) + 1;
}
function run_on(figure, apart, step) {
  const turn = turns[figure];
  const visible = () => {
    const { top, bottom } = document.getElementById(figure).getBoundingClientRect();
    return document.visibilityState === "visible" && bottom > 0 && top < window.innerHeight;
  };
  let last = performance.now();
  requestAnimationFrame(function next(now) {
    if (turns[figure] !== turn) return;
    if (now - last >= apart && visible()) {
      last = now;
      if (step() === false) return;
    }
    requestAnimationFrame(next);
  });
}
