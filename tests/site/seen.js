// What a reader of the page sees wrong, as lines of [kind, words]: "small" type, "pale" or "white" controls.
async () => {
  const found = [], drop = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colours = (window.seenColours ??= new Map()), files = (window.seenFiles ??= new Map());
  const rgba = (text) => {
    if (!colours.has(text)) {
      drop.clearRect(0, 0, 1, 1);
      drop.fillStyle = text;
      drop.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = drop.getImageData(0, 0, 1, 1).data;
      colours.set(text, [r, g, b, a / 255]);
    }
    return colours.get(text);
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((part, i) => a * part + (1 - a) * below[i]);
  const light = (rgb) => rgb.map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const parent = (element) => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host;
  // what lies behind an element's words, and how much of them its opacity leaves
  const behind = (element) => {
    const layers = [];
    let left = 1;
    for (let box = element; box; box = parent(box)) {
      const { backgroundColor, opacity } = getComputedStyle(box);
      left *= opacity;
      layers.push(rgba(backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return [layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255]), left];
  };
  const dark = document.documentElement.dataset.theme === "dark";
  const CONTROL = "button, select, input:not([type=checkbox], [type=radio], [type=range], [type=hidden]), textarea, summary, [role=button], [role=tab], .btn, .start-button, .sd-tab-label";
  const shown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.getClientRects().length;
  const called = (element) => `${element.tagName.toLowerCase()}.${element.getAttribute("class")}: ${(element.textContent || element.value || element.title || "").trim().slice(0, 40)}`;
  const control = (element) => {
    if (!shown(element) || getComputedStyle(element).clipPath !== "none") return;
    const [back, left] = behind(element), { color } = getComputedStyle(element), [r, g, b, a] = rgba(color);
    const lights = [light(over([r, g, b, a * left], back)), light(back)], ratio = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
    const idle = element.matches("[disabled], [aria-disabled=true], .disabled"); // what cannot be pressed is fainter, not unseen
    if (ratio < (idle ? 2 : 4.5)) found.push(["pale", `${called(element)} has a contrast of ${ratio.toFixed(1)}`]);
    if (dark && lights[1] > 0.75) found.push(["white", called(element)]);
  };
  const small = (size, element, words) => {
    if (size < 8.95) found.push(["small", `${size.toFixed(1)} px, ${element.closest("figure[id]")?.id ?? called(element)}: ${words.trim().slice(0, 30)}`]);
  };
  const visit = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) visit(element.shadowRoot);
      if (element.matches(CONTROL)) control(element);
      if (element.closest(".katex, script, style, noscript, option, defs")) continue; // an index of an index is as small as in print
      const words = [...element.childNodes].filter((one) => one.nodeType === 3).map((one) => one.data).join("");
      if (!words.trim() || !shown(element)) continue;
      const box = element.getBoundingClientRect(), style = getComputedStyle(element);
      if (box.width <= 1 || box.height <= 1 || style.clip !== "auto" || style.clipPath !== "none") continue;
      const turned = element instanceof SVGElement ? element.getScreenCTM() : { a: 1, b: 0 };
      small(parseFloat(style.fontSize) * Math.hypot(turned.a, turned.b), element, words);
    }
  };
  visit(document);
  // matplotlib keeps letters as paths of 100 units: the scale of a path is the size of its type
  for (const image of document.querySelectorAll(".bd-article img")) {
    const address = image.currentSrc || image.src;
    if (!/\.svg(\?|$)/.test(address) || !shown(image)) continue;
    if (!files.has(address)) {
      const text = await (await fetch(address)).text(), sizes = [...text.matchAll(/scale\((0\.\d+) -\1\)/g)].map(([, one]) => 100 * one);
      sizes.push(...[...text.matchAll(/font(?:-size)?: ?(?:\w+ )*([\d.]+)px/g)].map(([, one]) => Number(one)));
      if (!sizes.length && text.includes('id="text_')) sizes.push(0);
      files.set(address, Math.min(...sizes) / Number(text.match(/viewBox="\S+ \S+ (\S+)/)?.[1]));
    }
    small(files.get(address) * image.getBoundingClientRect().width, image, image.alt);
  }
  return found;
}
