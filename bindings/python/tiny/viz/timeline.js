// When what ran: a row for each kind of work and thread, drawn on a canvas that can be zoomed and moved.
import {element, hideTip, seconds, showTip} from "./dom.js";

const rowHeight = 26, axisHeight = 26, labelWidth = 130;

function rowsOf(events) {
  const rows = new Map();
  for (const event of events) {
    const key = `${event.cat} ${event.tid}`;
    if (!rows.has(key)) rows.set(key, {title: event.cat, events: []});
    rows.get(key).events.push(event);
  }
  const counts = new Map();
  for (const row of rows.values()) {
    const number = (counts.get(row.title) ?? 0) + 1;
    counts.set(row.title, number);
    if (number > 1) row.title += ` ${number}`;
    row.events.sort((a, b) => a.ts - b.ts);
  }
  return [...rows.values()].sort((a, b) => a.title.localeCompare(b.title));
}

function colourOf(name) {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
  return `hsl(${hash % 360} 60% 62%)`;
}

function tipOf(event) {
  const lines = [event.name, `${seconds(event.dur * 1e-6)} at ${seconds(event.ts * 1e-6)}`];
  const given = event.args ?? {};
  if (given.computes?.length) lines.push(given.computes.join(" + "));
  if (given.gflops !== undefined) lines.push(`${given.gflops.toFixed(2)} GFLOPS, ${given.gbps.toFixed(2)} GB/s`);
  return lines.join("\n");
}

// A step of 1, 2 or 5 times a power of ten that gives about `count` of them.
function stepOf(span, count) {
  const rough = span / count, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((by) => by * power).find((step) => step >= rough);
}

export function show(main, data) {
  const rows = rowsOf(data.traceEvents);
  const canvas = element("canvas", {class: "time", id: "time", height: axisHeight + rows.length * rowHeight});
  const first = Math.min(...data.traceEvents.map((event) => event.ts), Infinity);
  const last = Math.max(...data.traceEvents.map((event) => event.ts + event.dur), 0);
  let view = {from: first, to: last};
  const whole = () => {
    view = {from: first, to: last};
    paint();
  };
  main.replaceChildren(
      element("h2", {class: "title"}, "time line"),
      element("div", {class: "tools"}, element("button", {onclick: whole}, "show all"),
              element("span", {class: "note"}, `${data.traceEvents.length} events in ${seconds((last - first) * 1e-6)}; wheel: zoom; drag: move; click a launch to look into its kernel`)),
      canvas, element("p", {class: "note"}, data.spans_left_out ? `${data.spans_left_out} later events are left out` : ""));
  if (!rows.length) return;

  const x = (time) => labelWidth + ((time - view.from) / (view.to - view.from)) * (canvas.clientWidth - labelWidth);
  const time = (at) => view.from + ((at - labelWidth) / (canvas.clientWidth - labelWidth)) * (view.to - view.from);
  function paint() {
    const scale = devicePixelRatio, width = canvas.clientWidth, height = axisHeight + rows.length * rowHeight;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.body);
    const [text, line] = [style.getPropertyValue("--text"), style.getPropertyValue("--line")];
    pen.scale(scale, scale);
    pen.font = "12px ui-monospace, monospace";
    const step = stepOf(view.to - view.from, Math.max(2, width / 140));
    for (let at = Math.ceil((view.from - first) / step) * step; at + first <= view.to; at += step) {
      pen.fillStyle = line;
      pen.fillRect(x(at + first), axisHeight - 6, 1, height);
      pen.fillStyle = text;
      pen.fillText(seconds(at * 1e-6), x(at + first) + 3, 14);
    }
    rows.forEach((row, i) => paintRow(pen, row, axisHeight + i * rowHeight, width, text));
  }
  function paintRow(pen, row, y, width, text) {
    let covered = -1;
    for (const event of row.events) {
      const left = Math.max(x(event.ts), labelWidth), right = Math.min(Math.max(x(event.ts + event.dur), left + 1), width);
      if (right < labelWidth || left > width || right <= covered) continue;
      covered = right;
      pen.fillStyle = colourOf(event.name);
      pen.fillRect(left, y + 3, right - left, rowHeight - 6);
      if (right - left < 40) continue;
      pen.save();
      pen.beginPath();
      pen.rect(left, y, right - left - 4, rowHeight);
      pen.clip();
      pen.fillStyle = "#101418";
      pen.fillText(event.name, left + 4, y + 17);
      pen.restore();
    }
    pen.clearRect(0, y, labelWidth - 2, rowHeight);
    pen.fillStyle = text;
    pen.fillText(row.title, 2, y + 17);
  }
  const eventAt = (pointer) => {
    const row = rows[Math.floor((pointer.offsetY - axisHeight) / rowHeight)];
    const slack = 2 * (view.to - view.from) / canvas.clientWidth, at = time(pointer.offsetX);
    return row && pointer.offsetX >= labelWidth ? row.events.find((event) => event.ts - slack <= at && at <= event.ts + event.dur + slack) : undefined;
  };
  let moved = 0, isDown = false;
  canvas.addEventListener("wheel", (pointer) => {
    pointer.preventDefault();
    const by = Math.exp(pointer.deltaY * 0.002), at = time(pointer.offsetX);
    view = {from: at - (at - view.from) * by, to: at + (view.to - at) * by};
    paint();
  }, {passive: false});
  canvas.addEventListener("pointerdown", (pointer) => {
    isDown = true;
    moved = 0;
    canvas.setPointerCapture(pointer.pointerId);
  });
  canvas.addEventListener("pointermove", (pointer) => {
    if (!isDown) {
      const event = eventAt(pointer);
      return event ? showTip(tipOf(event), pointer) : hideTip();
    }
    moved += Math.abs(pointer.movementX);
    const by = (pointer.movementX / (canvas.clientWidth - labelWidth)) * (view.to - view.from);
    view = {from: view.from - by, to: view.to - by};
    paint();
  });
  canvas.addEventListener("pointerup", (pointer) => {
    isDown = false;
    const event = moved < 4 ? eventAt(pointer) : undefined;
    if (event && data.kernelOf.has(event.name)) location.hash = `#/kernel/${encodeURIComponent(event.name)}`;
  });
  canvas.addEventListener("pointerleave", hideTip);
  new ResizeObserver(paint).observe(canvas.parentElement);
  paint();
}
