"use strict";
// The panel about the run: settings, provenance, warnings, log.

{
  const { byId, get, make } = inspector;
  const TABS = ["settings", "provenance", "warnings", "log"];
  let payload = null;
  let tab = "settings";

  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));

  function tables(value) {
    const loose = Object.entries(value).filter(([, each]) => !isTable(each));
    const parts = [];
    if (loose.length) parts.push(table(loose));
    for (const [name, each] of Object.entries(value)) if (isTable(each)) parts.push(make("h3", {}, name), table(Object.entries(each)));
    return parts;
  }

  const isTable = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const table = (entries) => make("table", {}, ...entries.map(([key, value]) => make("tr", {}, make("th", { scope: "row" }, key), make("td", {}, text(value)))));
  const lines = (all, kind) => make("pre", { class: kind }, all.join("\n"));

  function content() {
    if (tab === "settings") return tables(payload.settings);
    if (tab === "provenance") return [table([["folder", payload.path]]), ...tables(payload.info)];
    if (tab === "warnings") return payload.warnings.length ? [lines(payload.warnings, "warning")] : [make("p", { class: "hint" }, "No warnings.")];
    return payload.log.length ? [lines(payload.log, "")] : [make("p", { class: "hint" }, "No log.")];
  }

  function redraw() {
    const count = payload ? payload.warnings.length : 0;
    byId("about-tabs").replaceChildren(
      ...TABS.map((name) => {
        const button = make("button", { type: "button", role: "tab", "aria-selected": name === tab }, name === "warnings" && count ? `warnings (${count})` : name);
        button.addEventListener("click", () => {
          tab = name;
          redraw();
        });
        return button;
      }),
    );
    if (!payload) return;
    byId("about").replaceChildren(...content());
    byId("about").scrollTop = tab === "log" ? byId("about").scrollHeight : 0;
  }

  function open(visible) {
    byId("drawer").hidden = !visible;
    byId("details").setAttribute("aria-expanded", visible);
    redraw();
  }
  byId("details").addEventListener("click", () => open(byId("drawer").hidden));
  byId("close-drawer").addEventListener("click", () => open(false));
  addEventListener("keydown", (event) => event.key === "Escape" && open(false));

  inspector.refreshAbout = async () => {
    try {
      payload = await get(`about/${inspector.state.run}`);
      redraw();
    } catch (error) {
      byId("about").replaceChildren(make("p", { class: "hint" }, error.message));
    }
  };
}
