// Above each table with data-filter: a box for words, and a choice of values for each column that it names.
for (const table of document.querySelectorAll("table[data-filter]")) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows], form = document.createElement("form"), count = document.createElement("span");
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const box = Object.assign(document.createElement("input"), { type: "search", placeholder: "words", ariaLabel: "words" });
  const choices = table.dataset.filter.split(",").map((name) => {
    const column = heads.indexOf(name), choice = document.createElement("select");
    choice.ariaLabel = name;
    choice.add(new Option(`every ${name}`, ""));
    for (const value of [...new Set(rows.map((row) => row.cells[column].textContent))].sort()) choice.add(new Option(value || "(none)", value));
    return [column, choice];
  });
  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/);
    let shown = 0;
    rows.forEach((row, k) => {
      row.hidden = !words.every((word) => texts[k].includes(word)) ||
        choices.some(([column, choice]) => choice.selectedIndex && row.cells[column].textContent !== choice.value);
      shown += !row.hidden;
    });
    count.textContent = `${shown} of ${rows.length} rows`;
  };
  form.className = "filter";
  form.append(box, ...choices.map(([, choice]) => choice), count);
  form.addEventListener("input", show);
  table.parentElement.before(form);
  show();
}
