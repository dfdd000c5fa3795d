// Where on the road the reader was. Kept in this browser alone; the pages read without it.
"use strict";

{
  const PLACE = "attnbook-road", root = new URL("../", document.currentScript.src);

  /** What is kept: the address from the book's root, and the words of its heading. */
  const kept = () => {
    try {
      const { at, words } = JSON.parse(localStorage.getItem(PLACE));
      return typeof at === "string" && typeof words === "string" ? { address: new URL(at, root), words } : null;
    } catch { return null; }
  };

  /** A heading without its mark for a link. */
  const words = (heading) => [...heading.childNodes].filter((one) => !one.matches?.(".headerlink")).map((one) => one.textContent).join("");

  const list = document.querySelector("ul.road");
  if (list) {
    /** Mark the page in the list, and lead on. */
    const show = () => {
      for (const old of document.querySelectorAll(".road-go-on, .road-here")) old.remove();
      const place = kept(), links = [...list.querySelectorAll("li > p:first-child > a")];
      const link = links.find((one) => one.pathname === place?.address.pathname);
      if (!link) return;
      const here = Object.assign(document.createElement("span"), { className: "road-here", textContent: "you are here" });
      link.after(here);
      const line = Object.assign(document.createElement("p"), { className: "road-go-on", textContent: "Go on where you were: " });
      line.append(Object.assign(document.createElement("a"), { href: place.address, textContent: place.words }));
      const buttons = document.querySelector(".start-buttons");
      if (buttons) buttons.after(line);
      else list.before(line);
    };
    show();
    addEventListener("pageshow", show); // also when Back brings the page as it was
  } else {
    const beside = ".deeper, section:has(> .deeper), #exercises, #references";
    const sections = [...document.querySelectorAll(".bd-article section[id]:has(> :is(h1, h2, h3))")].filter((one) => !one.closest(beside));
    let waits = 0;
    const keep = () => {
      const now = sections.findLast((one) => one.getBoundingClientRect().top < innerHeight / 5);
      if (!now) return;
      const at = location.pathname.slice(root.pathname.length) + (now === sections[0] ? "" : `#${now.id}`);
      const place = JSON.stringify({ at, words: words(now.querySelector("h1, h2, h3")) });
      try { localStorage.setItem(PLACE, place); } catch { /* a browser that keeps nothing */ }
    };
    addEventListener("scroll", () => { clearTimeout(waits); waits = setTimeout(keep, 300); }, { passive: true });
  }
}
