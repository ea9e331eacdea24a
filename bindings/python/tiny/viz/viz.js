// The page: the record of what a context did, by the place that stands behind the # of the address.
import {element, hideTip, seconds} from "./dom.js";
import * as kernelView from "./kernel.js";
import * as scheduleView from "./schedule.js";
import * as timeView from "./timeline.js";

const main = document.getElementById("main"), list = document.getElementById("list");
const filter = document.getElementById("filter");
let data;

function prepare(record) {
  record.kernelOf = new Map(record.kernels.map((kernel) => [kernel.name, kernel]));
  record.times = new Map();
  for (const event of record.traceEvents) {
    if (event.cat !== "launch") continue;
    const one = record.times.get(event.name) ?? {count: 0, total: 0, best: Infinity, computes: event.args?.computes ?? []};
    one.count += 1;
    one.total += event.dur * 1e-6;
    one.best = Math.min(one.best, event.dur * 1e-6);
    record.times.set(event.name, one);
  }
  return record;
}

function sidebar(current) {
  const wanted = filter.value.trim().toLowerCase();
  const most = Math.max(1e-12, ...[...data.times.values()].map((one) => one.total));
  list.replaceChildren();
  data.programs.forEach((program, number) => {
    const rows = program.kernels.filter((kernel) =>
        `${kernel.name} ${data.times.get(kernel.name)?.computes.join(" ") ?? ""}`.toLowerCase().includes(wanted));
    if (!rows.length && wanted) return;
    list.append(element("h2", {}, element("a", {href: `#/schedule/${number}`}, `schedule ${number + 1}: ${program.kernels.length} kernels`)));
    for (const kernel of rows) {
      const times = data.times.get(kernel.name);
      list.append(element("a", {class: `kernel ${kernel.name === current ? "on" : ""}`, title: kernel.name, "data-kernel": kernel.name,
                                href: `#/kernel/${encodeURIComponent(kernel.name)}`},
                          element("b", {}, kernel.name), element("span", {}, times ? seconds(times.best) : ""),
                          element("i", {}, times?.computes.join(" + ") ?? ""),
                          element("u", {style: `width:${((times?.total ?? 0) / most) * 100}%`})));
    }
  });
}

function route() {
  hideTip();
  const [view = "schedule", name = "0", tab, number] = location.hash.replace(/^#\/?/, "").split("/").filter((part) => part)
      .map(decodeURIComponent);
  const at = number === undefined ? undefined : Number(number);
  document.querySelectorAll("header nav a").forEach((link) => link.classList.toggle("on", link.dataset.view === view));
  sidebar(view === "kernel" ? name : undefined);
  if (view === "time") timeView.show(main, data);
  else if (view === "kernels") kernelView.table(main, data);
  else if (view === "kernel") kernelView.show(main, data, name, tab, at);
  else scheduleView.show(main, data, Number(name) || 0, tab, at ?? -1);
  main.scrollTop = 0;
}

// The arrows go from schedule to schedule's next kernel, and back.
function onKey(event) {
  if (event.target === filter || !["j", "k"].includes(event.key)) return;
  const links = [...list.querySelectorAll(".kernel")];
  const now = links.findIndex((link) => link.classList.contains("on"));
  const next = links[now + (event.key === "j" ? 1 : -1)];
  if (next) location.hash = next.getAttribute("href");
}

async function start() {
  try {
    const [record, about] = await Promise.all([fetch("record.json"), fetch("about.json")].map((one) => one.then((r) => r.json())));
    data = prepare(record);
    document.getElementById("about").textContent = about.text;
  } catch (error) {
    main.textContent = `the record cannot be read: ${error}`;
    return;
  }
  filter.addEventListener("input", () => sidebar());
  addEventListener("hashchange", route);
  addEventListener("keydown", onKey);
  route();
  document.body.dataset.ready = "1";
}
start();
