const search = document.getElementById("filter");
search.addEventListener("input", () => {
  const words = search.text.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of $("#repositories tbody tr")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  document.getElementById("shown").textContent = `${shown.toLocaleString("en")} shown`;
});
search.addEventListener("submit", (event) => event.preventDefault());
