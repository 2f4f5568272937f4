// Values under the pointer, the finger or the arrow keys. Without this script the titles of the shapes show them.
(function () {
  "use strict";
  var tip = document.getElementById("tip"), shown = null;
  function hide() {
    if (shown) { shown.classList.remove("on"); }
    shown = null;
    tip.hidden = true;
  }
  function show(hit) {
    if (hit === shown) { return; }
    hide();
    shown = hit;
    hit.classList.add("on");
    tip.textContent = hit.getAttribute("data-tip");
    tip.hidden = false;
    var box = hit.getBoundingClientRect(), page = document.documentElement.clientWidth;
    var left = box.left + box.width / 2 - tip.offsetWidth / 2;
    left = Math.max(4, Math.min(left, page - tip.offsetWidth - 4));
    var top = box.top - tip.offsetHeight - 6;
    if (top < 4) { top = Math.min(box.bottom, window.innerHeight - tip.offsetHeight - 10) + 6; }
    tip.style.left = left + window.scrollX + "px";
    tip.style.top = top + window.scrollY + "px";
  }
  function step(figure, by) {
    var hits = Array.prototype.slice.call(figure.querySelectorAll(".hit"));
    var at = hits.indexOf(shown);
    show(hits[at < 0 ? (by > 0 ? 0 : hits.length - 1) : Math.max(0, Math.min(hits.length - 1, at + by))]);
  }
  document.querySelectorAll("svg.chart").forEach(function (figure) {
    figure.querySelectorAll(".hit > title").forEach(function (title) {
      title.parentNode.setAttribute("data-tip", title.textContent);
      title.remove();
    });
    figure.setAttribute("tabindex", "0");
    figure.addEventListener("pointerover", function (event) {
      if (event.target.classList.contains("hit")) { show(event.target); }
    });
    figure.addEventListener("pointerleave", function (event) { if (event.pointerType === "mouse") { hide(); } });
    figure.addEventListener("blur", hide);
    figure.addEventListener("keydown", function (event) {
      if (event.key === "ArrowRight") { step(figure, 1); }
      else if (event.key === "ArrowLeft") { step(figure, -1); }
      else if (event.key === "Escape") { hide(); }
      else { return; }
      event.preventDefault();
    });
  });
  document.addEventListener("pointerdown", function (event) {
    if (!event.target.classList || !event.target.classList.contains("hit")) { hide(); }
  });
  var folded = [];
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not([open])").forEach(function (part) { part.open = true; folded.push(part); });
  });
  window.addEventListener("afterprint", function () {
    folded.forEach(function (part) { part.open = false; });
    folded = [];
  });
})();
