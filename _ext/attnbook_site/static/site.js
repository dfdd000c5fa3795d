// The pages read without it.
"use strict";

for (const icon of document.querySelectorAll(".fa-solid, .fas, .fab, .far")) icon.ariaHidden = "true"; // a letter of a font

/** An entry of a list that lies over the page as a drawer closes the drawer before it leads on. */
document.addEventListener("click", (event) => {
  const entry = event.target.closest("dialog[id$=sidebar-modal] a[href]");
  if (!entry || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // a tab or window of its own
  const drawer = entry.closest("dialog");
  event.preventDefault();
  drawer.addEventListener("close", () => location.assign(entry.href), { once: true });
  drawer.close();
});

/** A figure as large as the window, or wider, to be moved about; Escape and Close give the focus back to it. */
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.whole");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const box = Object.assign(document.createElement("dialog"), { className: "whole", onclose: () => box.remove() });
  box.innerHTML = '<form method="dialog"><button>Close</button></form>';
  box.append(link.firstElementChild.cloneNode());
  document.querySelector(".bd-article").append(box);
  box.showModal();
});
