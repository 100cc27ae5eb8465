"use strict";
const parts = Array.from(document.querySelectorAll("[data-kernel]"));
const numbersOf = part => part.dataset.kernel.split(" ").filter(number => number !== "");
function light(numbers) {
  for (const part of parts) {
    part.classList.toggle("lit", numbersOf(part).some(number => numbers.includes(number)));
  }
}
for (const part of parts) {
  part.addEventListener("mouseenter", () => light(numbersOf(part)));
  part.addEventListener("mouseleave", () => light([]));
}
