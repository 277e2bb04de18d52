// Opens a page of the built site without a network, searches, and prints as JSON what a reader then sees.
// node site.mjs FILE_URL CHROMIUM SCREENSHOT
import { chromium } from "playwright-core";

const [url, executablePath, screenshot] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 1600 }, offline: true });
  const page = await context.newPage();
  const asked = [], errors = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => errors.push(String(error)));
  const begun = Date.now();
  await page.goto(url);
  const milliseconds = Date.now() - begun;
  await page.fill("#search", "blast radius");
  const hits = await page.$$eval("#hits a", (all) => all.map((link) => link.getAttribute("href")));
  const broken = await page.$$eval("img", (all) => all.filter((image) => !image.naturalWidth).length);
  const formulas = await page.$$eval("math", (all) => all.filter((one) => one.getBoundingClientRect().width > 0).length);
  await page.screenshot({ path: screenshot });
  const outside = asked.filter((one) => !one.startsWith("file:") && !one.startsWith("data:"));
  console.log(JSON.stringify({ hits, broken, formulas, errors, outside, milliseconds }));
} finally {
  await browser.close();
}
