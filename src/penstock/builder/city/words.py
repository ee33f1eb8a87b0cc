"""Words that the city is made of: its places, names and trades."""

from __future__ import annotations

import msgspec


class Town(msgspec.Struct, frozen=True):
    """A town: where it lies, how its postcodes begin, and its telephone area."""

    name: str
    state: str
    postcode: str
    area: str
    lat: float
    lon: float


TOWNS = [
    Town(*row)
    for row in (
        ("Springfield", "IL", "627", "217", 39.80, -89.64),
        ("Peoria", "IL", "616", "309", 40.69, -89.59),
        ("Boston", "MA", "021", "617", 42.36, -71.06),
        ("Worcester", "MA", "016", "508", 42.26, -71.80),
        ("Albany", "NY", "122", "518", 42.65, -73.76),
        ("Buffalo", "NY", "142", "716", 42.89, -78.88),
        ("Columbus", "OH", "432", "614", 39.96, -83.00),
        ("Dayton", "OH", "454", "937", 39.76, -84.19),
        ("Portland", "OR", "972", "503", 45.52, -122.68),
        ("Salem", "OR", "973", "971", 44.94, -123.04),
        ("Denver", "CO", "802", "303", 39.74, -104.99),
        ("Boulder", "CO", "803", "720", 40.01, -105.27),
        ("Austin", "TX", "787", "512", 30.27, -97.74),
        ("Dallas", "TX", "752", "214", 32.78, -96.80),
        ("Madison", "WI", "537", "608", 43.07, -89.40),
        ("Green Bay", "WI", "543", "920", 44.51, -88.01),
        ("Savannah", "GA", "314", "912", 32.08, -81.09),
        ("Tulsa", "OK", "741", "918", 36.15, -95.99),
        ("Hartford", "CT", "061", "860", 41.76, -72.67),
        ("Newark", "NJ", "071", "973", 40.74, -74.17),
    )
]
OWNERS = (
    "Abbott Alvarez Amato Bauer Becker Bellamy Brandt Brennan Calloway Castillo Chen Corbin Dalton "
    "Delgado Drummond Ellison Faulkner Ferreira Fischer Garland Gentry Hale Hartwell Hensley "
    "Holloway Ibarra Jansen Kaplan Keller Kowalski Lindgren Lockhart Marchetti Mercer Nakamura "
    "Norwood Oakley Okafor Osborne Pacheco Pruitt Quinn Ramsey Ridley Rowland Sandoval Schaefer "
    "Sinclair Stanton Sutter Thackeray Tran Underhill Vance Voss Wainwright Weller Whitaker Yates "
    "Zielinski"
).split()
FANCIES = (
    "Amber|Blue Heron|Brick Lane|Cedar|Copper Kettle|Crescent|Evergreen|Falcon|First Light|"
    "Golden Gate|Granite|Harbor|Ironwood|Juniper|Keystone|Lakeside|Liberty|Maple|Meadow|Northstar|"
    "Old Mill|Orchard|Pinecrest|Quarry|Red Barn|Redwood|Riverbend|Sagebrush|Silver Creek|Skyline|"
    "Stonebridge|Summit|Sunrise|Three Oaks|Timberline|Union|Valley|Westgate|Wildflower|Windmill"
).split("|")
TRADES = (
    "Auto Repair|Bakery|Bookkeeping|Brewing|Cabinets|Catering|Cleaning|Coffee Roasters|Consulting|"
    "Dental|Electric|Engineering|Fencing|Flooring|Florist|Freight|Glass|Heating|Insurance|Interiors|"
    "Landscaping|Law Group|Logistics|Machine Works|Masonry|Motors|Nursery|Optical|Outfitters|"
    "Packaging|Painting|Pharmacy|Photography|Plumbing|Printing|Realty|Roofing|Security|Software|"
    "Supply|Tile|Tools|Travel|Upholstery|Veterinary|Windows"
).split("|")
# What the name of a relative has more.
RELATIVES = ("Supply", "East", "Services", "II", "Partners")
FORMS = ("LLC", "LLC", "LLC", "Inc", "Inc", "Corp", "Co", "LLP", None)
STREETS = (
    "Main St|Oak St|Maple Ave|Washington Ave|Park Blvd|Elm St|2nd St|5th Ave|Lake Rd|Hill Rd|"
    "River Rd|Cedar Ln|Franklin St|Jefferson Ave|Mill Rd|Church St|Spring St|Commerce Dr|"
    "Industrial Pkwy|Market St"
).split("|")
FIRST_NAMES = "alex dana jamie jordan kim lee maria morgan pat robin sam taylor".split()
MAILBOXES = "info contact office hello sales service".split()
