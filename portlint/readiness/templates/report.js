const form = document.getElementById("filter");
let groups; // read when they are first filtered: most readers open the page to look at its top

function read() {
  groups ??= $("#findings > details").map((group) => ({
    group, name: group.querySelector("summary").textContent.toLowerCase(),
    rows: $("tbody tr", group).map((row) => ({ row, text: row.textContent.toLowerCase(), targets: row.dataset.t.split(" "),
      verdicts: row.dataset.v.split(" "), effort: row.dataset.e })),
  }));
  return groups;
}

function filter() {
  const words = form.text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const target = form.target.value, verdict = form.verdict.value, effort = form.effort.value;
  let shown = 0;
  for (const { group, rows, name } of read()) {
    let left = 0;
    for (const one of rows) {
      const fits = one.targets.some((t, i) => (!target || t === target) && (!verdict || one.verdicts[i] === verdict)) && (!effort || one.effort === effort)
        && words.every((word) => one.text.includes(word) || name.includes(word));
      if (one.row.hidden === fits) one.row.hidden = !fits;
      left += fits;
    }
    group.hidden = !left;
    shown += left;
  }
  document.getElementById("shown").textContent = `${shown.toLocaleString("en")} shown`;
}
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(filter));

function open() {
  const [id, target] = decodeURIComponent(location.hash.slice(1)).split("@");
  const place = document.getElementById(id);
  if (!place) return;
  if (id.startsWith("r-")) {
    form.reset();
    form.target.value = target || "";
    filter();
  }
  for (let one = place; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  place.scrollIntoView();
}
addEventListener("hashchange", open);
open();

for (const link of $("a[data-file]")) link.addEventListener("click", () => {
  form.reset();
  form.text.value = link.dataset.file;
  form.target.value = link.dataset.target;
  filter();
  for (const { group } of read()) group.open = !group.hidden;
});
