"""The Unicode scripts that RE2 knows by name, as ranges of code points; a range may contain unassigned code points.

The ranges are those of Unicode 6.0, which RE2/J uses.
"""

from __future__ import annotations

from functools import cache

_TABLE = """
Arabic 600-603 606-60b 60d-61a 61e 620-63f 641-64a 656-65e 66a-66f 671-6dc 6de-6ff 750-77f fb50-fbc1 fbd3-fd3d
    fd50-fdc7 fdf0-fdfc fe70-fefc 10e60-10e7e
Armenian 531-55f 561-587 58a fb13-fb17
Avestan 10b00-10b3f
Balinese 1b00-1b4b 1b50-1b7c
Bamum a6a0-a6f7 16800-16a38
Batak 1bc0-1bff
Bengali 981-9fb
Bopomofo 2ea-2eb 3105-312d 31a0-31ba
Brahmi 11000-1106f
Braille 2800-28ff
Buginese 1a00-1a1f
Buhid 1740-1753
Canadian_Aboriginal 1400-167f 18b0-18f5
Carian 102a0-102d0
Cham aa00-aa5f
Cherokee 13a0-13f4
Common 0-40 5b-60 7b-a9 ab-b9 bb-bf d7 f7 2b9-2df 2e5-2e9 2ec-2ff 374 37e 385 387 589 60c 61b 61f 640 660-669 6dd
    964-965 970 e3f fd5-fd8 10fb 16eb-16ed 1735-1736 1802-1803 1805 1cd3 1ce1 1ce9-1cec 1cee-1cf2 2000-200b
    200e-2064 206a-2070 2074-207e 2080-208e 20a0-20b9 2100-2125 2127-2129 212c-2131 2133-214d 214f-215f 2189
    2190-23f3 2400-26ff 2701-27ca 27cc 27ce-27ff 2900-2b4c 2b50-2b59 2e00-2e31 2ff0-3004 3006 3008-3020 3030-3037
    303c-303f 309b-309c 30a0 30fb-30fc 3190-319f 31c0-31e3 3220-325f 327f-32cf 3358-33ff 4dc0-4dff a700-a721
    a788-a78a a830-a839 fd3e-fd3f fdfd fe10-fe19 fe30-fe6b feff-ff20 ff3b-ff40 ff5b-ff65 ff70 ff9e-ff9f ffe0-fffd
    10100-1013f 10190-1019b 101d0-101fc 1d000-1d166 1d16a-1d17a 1d183-1d184 1d18c-1d1a9 1d1ae-1d1dd 1d300-1d371
    1d400-1d7ff 1f000-1f0be 1f0c1-1f0df 1f100-1f10a 1f110-1f12e 1f130-1f169 1f170-1f19a 1f1e6-1f1ff 1f201-1f23a
    1f240-1f251 1f300-1f320 1f330-1f335 1f337-1f37c 1f380-1f393 1f3a0-1f3c4 1f3c6-1f3ca 1f3e0-1f3f0 1f400-1f43e
    1f440 1f442-1f4f7 1f4f9-1f4fc 1f500-1f53d 1f550-1f567 1f5fb-1f5ff 1f601-1f610 1f612-1f614 1f616 1f618 1f61a
    1f61c-1f61e 1f620-1f625 1f628-1f62b 1f62d 1f630-1f633 1f635-1f640 1f645-1f64f 1f680-1f6c5 1f700-1f773
    e0001-e007f
Coptic 3e2-3ef 2c80-2cf1 2cf9-2cff
Cuneiform 12000-1236e 12400-12462 12470-12473
Cypriot 10800-1083f
Cyrillic 400-484 487-527 1d2b 1d78 2de0-2dff a640-a673 a67c-a697
Deseret 10400-1044f
Devanagari 900-950 953-963 966-96f 971-977 979-97f a8e0-a8fb
Egyptian_Hieroglyphs 13000-1342e
Ethiopic 1200-1399 2d80-2dde ab01-ab2e
Georgian 10a0-10c5 10d0-10fa 10fc 2d00-2d25
Glagolitic 2c00-2c2e 2c30-2c5e
Gothic 10330-1034a
Greek 370-373 375-37d 384 386 388-3e1 3f0-3ff 1d26-1d2a 1d5d-1d61 1d66-1d6a 1dbf 1f00-1ffe 2126 10140-1018a
    1d200-1d245
Gujarati a81-aef af1
Gurmukhi a01-a75
Han 2e80-2fd5 3005 3007 3021-3029 3038-303b 3400-4db5 4e00-9fcb f900-fa2d fa30-fad9 20000-2a6d6 2a700-2b734
    2b740-2b81d 2f800-2fa1d
Hangul 1100-11ff 302e-302f 3131-318e 3200-321e 3260-327e a960-a97c ac00-d7fb ffa0-ffdc
Hanunoo 1720-1734
Hebrew 591-5ea 5f0-5f4 fb1d-fb4f
Hiragana 3041-3096 309d-309f 1b001 1f200
Imperial_Aramaic 10840-1085f
Inherited 300-36f 485-486 64b-655 65f 670 951-952 1cd0-1cd2 1cd4-1ce0 1ce2-1ce8 1ced 1dc0-1de6 1dfc-1dff 200c-200d
    20d0-20f0 302a-302d 3099-309a fe00-fe0f fe20-fe26 101fd 1d167-1d169 1d17b-1d182 1d185-1d18b 1d1aa-1d1ad
    e0100-e01ef
Inscriptional_Pahlavi 10b60-10b7f
Inscriptional_Parthian 10b40-10b5f
Javanese a980-a9df
Kaithi 11080-110c1
Kannada c82-c83 c85-cd6 cde-cf2
Katakana 30a1-30fa 30fd-30ff 31f0-31ff 32d0-32fe 3300-3357 ff66-ff6f ff71-ff9d 1b000
Kayah_Li a900-a92f
Kharoshthi 10a00-10a33 10a38-10a47 10a50-10a58
Khmer 1780-17f9 19e0-19ff
Lao e81-e84 e87-e88 e8a e8d e94-e97 e99-e9f ea1-ea7 eaa-eab ead-eb9 ebb-edd
Latin 41-5a 61-7a aa ba c0-d6 d8-f6 f8-2b8 2e0-2e4 1d00-1d25 1d2c-1d5c 1d62-1d65 1d6b-1d77 1d79-1dbe 1e00-1eff 2071
    207f 2090-209c 212a-212b 2132 214e 2160-2188 2c60-2c7f a722-a787 a78b-a78e a790-a791 a7a0-a7a9 a7fa-a7ff
    fb00-fb06 ff21-ff3a ff41-ff5a
Lepcha 1c00-1c4f
Limbu 1900-191c 1920-194f
Linear_B 10000-100fa
Lisu a4d0-a4ff
Lycian 10280-1029c
Lydian 10920-1093f
Malayalam d02-d03 d05-d3a d3d-d4e d57 d60-d75 d79-d7f
Mandaic 840-85e
Meetei_Mayek abc0-abf9
Mongolian 1800-1801 1804 1806-180e 1810-1877 1880-18aa
Myanmar 1000-109f aa60-aa7b
New_Tai_Lue 1980-19df
Nko 7c0-7fa
Ogham 1680-169c
Ol_Chiki 1c50-1c7f
Old_Italic 10300-1031e 10320-10323
Old_Persian 103a0-103d5
Old_South_Arabian 10a60-10a7f
Old_Turkic 10c00-10c48
Oriya b01-b4d b56-b77
Osmanya 10480-104a9
Phags_Pa a840-a877
Phoenician 10900-1091f
Rejang a930-a95f
Runic 16a0-16ea 16ee-16f0
Samaritan 800-83e
Saurashtra a880-a8c4 a8ce-a8d9
Shavian 10450-1047f
Sinhala d82-ddf df2-df4
Sundanese 1b80-1baa 1bae-1bb9
Syloti_Nagri a800-a82b
Syriac 700-74f
Tagalog 1700-170c 170e-1714
Tagbanwa 1760-1773
Tai_Le 1950-1974
Tai_Tham 1a20-1aad
Tai_Viet aa80-aadf
Tamil b82-bfa
Telugu c01-c03 c05-c33 c35-c39 c3d-c59 c60-c6f c78-c7f
Thaana 780-7b1
Thai e01-e3a e40-e5b
Tibetan f00-fd4 fd9-fda
Tifinagh 2d30-2d65 2d6f-2d7f
Ugaritic 10380-1039f
Vai a500-a62b
Yi a000-a4c6
"""


@cache
def script_ranges() -> dict[str, tuple[tuple[int, int], ...]]:
    """Return the ranges (first and last code points) by the name of the script."""
    found: dict[str, list[tuple[int, int]]] = {}
    name = ""
    for word in _TABLE.split():
        if word[0].isupper():
            name = word
            found[name] = []
        else:
            first, _, last = word.partition("-")
            found[name].append((int(first, 16), int(last or first, 16)))
    return {name: tuple(ranges) for name, ranges in found.items()}
