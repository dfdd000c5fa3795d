// Light or dark before anything is drawn: as the address says, as it was left, as the system has it on a phone.
document.documentElement.dataset.theme = (() => {
  const asked = new URLSearchParams(location.search).get("theme");
  if (["light", "dark"].includes(asked)) return asked;
  try {
    const kept = localStorage.getItem("attnbook-slides-theme");
    if (kept) return kept;
  } catch { /* a private window */ }
  return matchMedia("(max-width: 700px) and (prefers-color-scheme: dark)").matches ? "dark" : "light";
})();
