// Search over headings and claims: every word must occur; at most 30 hits.
const box = document.getElementById("search");
const list = document.getElementById("hits");
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  list.replaceChildren();
  if (!words.length) return;
  let shown = 0;
  for (const [page, text, target] of INDEX) {
    const where = `${page} ${text}`.toLowerCase();
    if (!words.every((word) => where.includes(word))) continue;
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = target;
    link.textContent = text;
    item.append(link);
    list.append(item);
    if (++shown === 30) break;
  }
});
