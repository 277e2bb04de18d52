// Reads the built site without a network, on a laptop and on a phone, and prints as JSON what a reader sees.
// node site.mjs FOLDER_URL CHROMIUM SCREENSHOTS
import { chromium } from "playwright-core";

const [folder, executablePath, pictures] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const asked = [], errors = [], seen = { overflow: {} };

async function open(name, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1366, height: 900 }, offline: true, ...options });
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => errors.push(`${name}: ${error}`));
  await page.goto(`${folder}/${name}`);
  return page;
}
const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const hits = async (words) => {
  const page = await open(`search.html?q=${encodeURIComponent(words)}`);
  await page.waitForSelector("#search-results li a");
  await page.waitForTimeout(1000);
  return page.$$eval("#search-results li a", (all) => all.map((link) => link.getAttribute("href")));
};

try {
  const notebook = await open("notebooks/43_reliability_of_strategies.html");
  await notebook.waitForSelector("mjx-container");
  await notebook.waitForTimeout(1000);
  seen.formulas = await notebook.$$eval("mjx-container", (all) => all.filter((one) => one.getBoundingClientRect().width > 0).length);
  seen.broken = await notebook.$$eval("img", (all) => all.filter((image) => image.complete && !image.naturalWidth).length);
  seen.light = await background(notebook);
  await notebook.screenshot({ path: `${pictures}/notebook.png` });
  seen.dark = await background(await open("README.html", { colorScheme: "dark" }));

  const claims = await open("docs/claims.html#DALY-001");
  seen.computed = await claims.$eval("thead th:nth-child(3)", (cell) => cell.getBoundingClientRect().right);
  seen.marked = await claims.$eval("tr:target", (row) => row.id);
  const shown = () => claims.$$eval("tbody tr", (all) => all.filter((row) => row.offsetHeight).length);
  seen.rows = await shown();
  await claims.selectOption('select[aria-label="state"]', "discrepancy");
  seen.discrepancies = await shown();

  const whatif = await open("docs/whatif.html");
  const before = await whatif.textContent("#rows");
  await whatif.locator("#repair").press("ArrowLeft");
  seen.moved = before !== (await whatif.textContent("#rows"));

  seen.hits = await hits("blast radius");
  seen.chinese = await hits("备用节点");
  const phone = { viewport: { width: 400, height: 850 }, isMobile: true, hasTouch: true };
  for (const name of ["README", "README.zh", "notebooks/34_pipeline_schedules", "docs/claims", "docs/whatif", "docs/survey", "docs/reference/relparallel.reliability"]) {
    const page = await open(`${name}.html`, phone);
    seen.overflow[name] = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    await page.screenshot({ path: `${pictures}/${name.replaceAll("/", "-")}.png` });
  }
  seen.errors = errors;
  seen.outside = asked.filter((one) => !one.startsWith("file:") && !one.startsWith("data:"));
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
}
