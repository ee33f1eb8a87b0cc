"""Scrapy as one would run it to survive a kill: JOBDIR, and an item pipeline that commits each item."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import TextResponse
from scrapy.spiders import SitemapSpider

from bench.product import check, parse, score
from bench.projects import percentiles
from bench.site import first_request_at, forget_first

UPSERT = """
INSERT INTO product (sku, data, score, version) VALUES (?, ?, ?, 1)
ON CONFLICT (sku) DO UPDATE
SET data = excluded.data, score = excluded.score, version = version + 1
WHERE data <> excluded.data
"""
# What made it faster here and takes nothing from the work: it makes so many tasks for each response, and its
# default is 100. Twisted's own reactor, fewer middlewares and extensions, or one task changed nothing or made
# it slower.
AT_ITS_BEST: dict[str, Any] = {"CONCURRENT_ITEMS": 8}


class Products(SitemapSpider):
    name = "products"

    def parse(self, response: TextResponse, **_: Any) -> Iterator[dict[str, Any]]:
        product = parse(response.text)
        yield {**product, "score": score(product)}


class SqlitePipeline:
    """Saves each product by its key, in a transaction of its own that is on the disk."""

    def __init__(self, file: str) -> None:
        self._file = file

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SqlitePipeline:
        return cls(crawler.settings["PRODUCTS_DB"])

    def open_spider(self) -> None:
        self._db = sqlite3.connect(self._file, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(
            "CREATE TABLE product (sku TEXT PRIMARY KEY, data BLOB, score REAL, version INTEGER)"
        )

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        self._db.execute(UPSERT, (item["sku"], msgspec.json.encode(item), item["score"]))
        return item

    def close_spider(self) -> None:
        self._db.close()


def crawl(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Crawl the site from its sitemap; start-up of the reactor is not counted, the crawl is."""
    process = CrawlerProcess(settings(size, folder))
    sitemaps = [origin + "/sitemap.xml" for origin in size["origins"]]
    process.crawl(Products, sitemap_urls=sitemaps)
    began = time.perf_counter()
    process.start()
    seconds = time.perf_counter() - began
    with sqlite3.connect(folder / "products.db") as db:
        check({sku for (sku,) in db.execute("SELECT sku FROM product")}, size["pages"])
    return {"seconds": seconds, "done": size["pages"]}


def cold_start(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """From the start of a process that crawls to its first request at the site."""
    waits_ms = []
    for number in range(size["starts"]):
        place = folder / str(number)
        place.mkdir()
        command = [sys.executable, "-m", "bench.side", "bench.peers.scrapy_crawl:crawl"]
        forget_first(size["origin"])
        began = time.time()
        subprocess.run([*command, json.dumps(size), "result.json"], cwd=place, check=True)
        waits_ms.append((first_request_at(size["origin"]) - began) * 1000)
    return percentiles(waits_ms)


def settings(size: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Scrapy's defaults, but for what the workload says and for what would only slow it down."""
    return {
        "JOBDIR": str(folder / "job"),
        "PRODUCTS_DB": str(folder / "products.db"),
        "ITEM_PIPELINES": {SqlitePipeline: 300},
        "CONCURRENT_REQUESTS": size["concurrency"] * len(size["origins"]),
        "CONCURRENT_REQUESTS_PER_DOMAIN": size["concurrency"],
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": True,
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "WARNING",
        **(AT_ITS_BEST if size["is_at_its_best"] else {}),
    }
