// Runs by the least loss that they reached, as bars. Insight calls `mount` when the page is opened.

const words = {
  en: { title: "Least loss of each run", part: "Scalars whose name has", step: "step", none: "No run has such a scalar." },
  zh: { title: "每个训练的最低损失", part: "名称包含", step: "步骤", none: "没有训练记录此类标量。" },
};

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text; // names come from files: they are text
  return made;
}

export function mount(host, { api, language }) {
  const w = words[language] ?? words.en;
  const style = element("link", "");
  style.rel = "stylesheet";
  style.href = new URL("page.css", import.meta.url).href;
  const field = element("input", "acme-part");
  field.value = "loss";
  const label = element("label", "", `${w.part} `);
  label.append(field);
  const list = element("ol", "acme-ranking");
  host.append(style, element("h1", "acme-title", w.title), label, list);

  let asked = 0;
  async function show() {
    const mine = ++asked;
    const address = new URL("best", api);
    address.searchParams.set("part", field.value);
    const answer = await fetch(address, { credentials: "same-origin" });
    const rows = await answer.json();
    if (mine !== asked) return;
    const greatest = Math.max(...rows.map((row) => row.value));
    list.replaceChildren(
      ...rows.map((row) => {
        const line = element("li", "acme-row");
        line.dataset.run = row.run;
        const bar = element("meter", "acme-bar");
        bar.max = greatest || 1;
        bar.value = row.value;
        line.append(element("strong", "", row.run), bar, element("span", "", `${row.tag} ${row.value.toPrecision(4)} (${w.step} ${row.step})`));
        return line;
      }),
    );
    if (!rows.length) list.append(element("li", "", w.none));
  }
  field.addEventListener("change", show);
  const timer = setInterval(show, 5000); // runs go on
  show();
  return () => clearInterval(timer);
}
