"use strict";
// What drawings on a canvas share: colours of the page, ticks, and a view along one axis that can be moved and zoomed.
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

let colours = {};
const colour = (name) => colours[name] || (colours[name] =
  getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());

// The first element of ascending numbers that is above a value.
function above(numbers, value) {
  let low = 0, high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
}

function prepared(element) {
  const ratio = window.devicePixelRatio || 1, width = element.clientWidth, height = element.clientHeight;
  if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
  }
  const pen = element.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  return { pen, width, height };
}

function ticks(low, high, most) {
  const rough = (high - low) / Math.max(most, 1), power = Math.pow(10, Math.floor(Math.log10(rough)));
  const steps = [0.5, 1, 2, 5, 10].map((one) => one * power), chosen = steps.findIndex((one) => one >= rough);
  const multiples = (step) => {
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
    return found;
  };
  let step = steps[chosen], found = multiples(step);
  if (found.length < 2 && chosen > 0) found = multiples((step = steps[chosen - 1])); // one says nothing of the scale
  return { found, digits: Math.max(-Math.floor(Math.log10(step) + 1e-9), 0) };
}

// Labels below or above an axis: each is wholly inside of the canvas, and those without room are left out.
function across(pen, labels, y, width) {
  let free = 0;
  pen.textAlign = "center";
  for (const [x, text] of labels.slice().sort((a, b) => a[0] - b[0])) {
    const half = pen.measureText(text).width / 2, middle = clamp(x, half, width - half);
    if (middle - half < free || Math.abs(middle - x) > half) continue;
    pen.fillText(text, middle, y);
    free = middle + half + 8;
  }
}

// A view of [first, end) on a canvas between margins: dragged, pinched, turned and typed at; `draw` draws it, and
// `words` are those of the tip at a place. `place` says where positions of the reference (0-based) are in the view.
function navigated(canvas, { first, end, narrowest, left, right, draw, words, place }) {
  const tip = document.getElementById("tip"), least = Math.min(narrowest, end - first);
  const nav = { view: [first, end], look, zoom, at, scale };

  function scale() { return (canvas.clientWidth - left - right) / (nav.view[1] - nav.view[0]); }
  function at(x) { return nav.view[0] + (x - left) / scale(); }

  function look(from, to) {
    const span = clamp(to - from, least, end - first), middle = (from + to) / 2;
    from = clamp(middle - span / 2, first, end - span);
    nav.view = [from, from + span];
    draw();
  }

  function zoom(factor, place) {
    const [from, to] = nav.view;
    if (place === undefined) place = (from + to) / 2;
    const span = clamp((to - from) * factor, least, end - first), share = (place - from) / (to - from);
    look(place - share * span, place + (1 - share) * span);
  }

  function point(x, y) {
    const text = words(x, y);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const figure = canvas.parentElement, across = canvas.offsetLeft + x + 14;
    tip.style.left = clamp(across, 4, Math.max(figure.clientWidth - tip.offsetWidth - 4, 4)) + "px";
    tip.style.top = canvas.offsetTop + clamp(y + 16, 0, canvas.clientHeight - tip.offsetHeight) + "px";
  }

  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event.offsetX);
    canvas.classList.add("dragged");
    point(event.offsetX, event.offsetY);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return point(event.offsetX, event.offsetY);
    const before = [...pointers.values()];
    pointers.set(event.pointerId, event.offsetX);
    const now = [...pointers.values()];
    if (now.length === 1) {
      const moved = (before[0] - now[0]) / scale();
      if (moved) {
        tip.hidden = true;
        look(nav.view[0] + moved, nav.view[1] + moved);
      }
    } else {
      const wide = Math.abs(before[0] - before[1]), wider = Math.abs(now[0] - now[1]);
      if (wide > 5 && wider > 5) zoom(wide / wider, at((now[0] + now[1]) / 2));
    }
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => {
    pointers.delete(event.pointerId);
    if (!pointers.size) canvas.classList.remove("dragged");
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    // a drawing higher than the window is scrolled, unless Ctrl says otherwise
    if (!isSideways && !event.ctrlKey && !event.metaKey && canvas.clientHeight > window.innerHeight) return;
    event.preventDefault();
    if (isSideways) {
      const moved = event.deltaX / scale();
      look(nav.view[0] + moved, nav.view[1] + moved);
    } else zoom(Math.exp(clamp(event.deltaY, -200, 200) / 400), at(event.offsetX));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const [from, to] = nav.view, span = to - from;
    const moves = { ArrowLeft: -0.2, ArrowRight: 0.2, PageUp: -1, PageDown: 1 };
    if (event.key in moves) look(from + moves[event.key] * span, to + moves[event.key] * span);
    else if (event.key === "+" || event.key === "=") zoom(0.7);
    else if (event.key === "-") zoom(1 / 0.7);
    else if (event.key === "Home") look(first, first + span);
    else if (event.key === "End") look(end - span, end);
    else if (event.key === "0") look(first, end);
    else return;
    event.preventDefault();
  });
  document.getElementById("in").onclick = () => zoom(0.5);
  document.getElementById("out").onclick = () => zoom(2);
  document.getElementById("whole").onclick = () => look(first, end);
  const asked = document.getElementById("goto");
  asked.addEventListener("change", () => {
    const found = asked.value.split(":").pop().replaceAll(",", "").match(/^\s*(\d+)\s*(?:-\s*(\d+)\s*)?$/);
    asked.setAttribute("aria-invalid", String(!found));
    if (!found) return;
    const [from, to] = place(found[1] - 1, (found[2] || found[1]) - 1);
    if (found[2]) return look(from, to);
    const span = Math.min(nav.view[1] - nav.view[0], Math.max(least, (end - first) / 20));
    look((from + to) / 2 - span / 2, (from + to) / 2 + span / 2);
  });
  document.getElementById("save").onclick = () => {
    const picture = document.createElement("canvas"), pen = picture.getContext("2d"), link = document.createElement("a");
    [picture.width, picture.height] = [canvas.width, canvas.height];
    pen.fillStyle = colour("card");
    pen.fillRect(0, 0, picture.width, picture.height);
    pen.drawImage(canvas, 0, 0);
    link.download = document.title.replace(/[^\w.-]+/g, "_") + ".png";
    link.href = picture.toDataURL("image/png");
    link.click();
  };
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours = {}; draw(); });
  return nav;
}
