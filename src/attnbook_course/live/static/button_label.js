// A button with another label is drawn anew, a moment later: a reader who is on it by key stays on it.
function relabel(button, label) {
  const root = window.Bokeh.index.find_one(button)?.el.shadowRoot, held = root?.activeElement;
  button.label = label;
  if (held) requestAnimationFrame(() => {
    if (document.activeElement === document.body) root.querySelector("button").focus({ preventScroll: true });
  });
}
