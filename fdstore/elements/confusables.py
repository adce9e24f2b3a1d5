"""Characters that look like those of our elements, by Unicode Technical Standard #39.

Generated from the package confusable-homoglyphs by `make generate`: change .ci/generate_confusables.py.
"""

CONFUSABLES = {
    "<": "\u02c2\u1438\u16b2\u2039\u276e\U0001d236",
    "/": "\u1735\u2041\u2044\u2215\u2571\u27cb\u29f8\u2cc6\u2cc7\u2f03\u3033\u30ce\u31d3\u4e3f\U0001d23a",
    "_": "\u07fa",
    "a": (
        "\u0251\u0391\u03b1\u0410\u0430\u13aa\u15c5\u237a\u2c6d\ua4ee"
        "\uab7a\U000102a0\U00016f40\U0001d6a8\U0001d6c2\U0001d6e2\U0001d6fc\U0001d71c\U0001d736\U0001d756"
        "\U0001d770\U0001d790\U0001d7aa"
    ),
    "c": (
        "\u03f2\u03f9\u0421\u0441\u13df\u1d04\u2ca4\u2ca5\ua4da\uabaf"
        "\U000102a2\U00010302\U00010415\U0001043d\U0001051c\U000118e9\U000118f2\U0001f74c"
    ),
    "d": "\u0500\u0501\u13a0\u13e7\u146f\u15de\u15ea\ua4d2\ua4d3\uab70\uabb7",
    "e": (
        "\u0395\u03b5\u0415\u0435\u04bc\u04bd\u13ac\u212e\u22ff\u2d39"
        "\ua4f0\uab32\uab7c\U00010286\U000118a6\U000118ae\U000118c6\U000118ce\U0001d6ac\U0001d6e6"
        "\U0001d720\U0001d75a\U0001d794"
    ),
    "f": (
        "\u017f\u03dc\u03dd\u0554\u0584\u15b4\u1e9d\ua4dd\ua798\ua799"
        "\uab35\U00010287\U000102a5\U00010525\U000118a2\U000118c2\U0001d213\U0001d7ca"
    ),
    "g": "\u018d\u0261\u050c\u050d\u0551\u0581\u13c0\u13f3\u13fb\u1d83\ua4d6\ua7ac\uab90",
    "h": (
        "\u0397\u03b7\u041d\u043d\u04ba\u04bb\u0540\u0570\u13bb\u13c2"
        "\u157c\u2c8e\u2c8f\ua4e7\uab8b\uab92\U000102cf\U0001d6ae\U0001d6e8\U0001d722"
        "\U0001d75c\U0001d796"
    ),
    "i": (
        "1Ll|\u0131\u0196\u01c0\u0269\u026a\u02db"
        "\u037a\u0399\u03b9\u0406\u0456\u04c0\u04cf\u05c0\u05d5\u05df"
        "\u0627\u0661\u06f1\u07ca\u13a5\u16c1\u1fbe\u2113\u216c\u217c"
        "\u2223\u2373\u23fd\u2c92\u2c93\u2d4f\ua4f2\ua646\ua647\ua7ae"
        "\uab75\ufe8d\ufe8e\uff2c\uff4c\uffe8\U0001028a\U00010309\U00010320\U000118a3"
        "\U000118c3\U00016f28\U0001d425\U0001d459\U0001d48d\U0001d4c1\U0001d4f5\U0001d529\U0001d55d\U0001d591"
        "\U0001d5c5\U0001d5f9\U0001d62d\U0001d661\U0001d695\U0001d6a4\U0001d6b0\U0001d6ca\U0001d6ea\U0001d704"
        "\U0001d724\U0001d73e\U0001d75e\U0001d778\U0001d798\U0001d7b2\U0001d7cf\U0001d7d9\U0001d7e3\U0001d7ed"
        "\U0001d7f7\U0001e8c7\U0001ee00\U0001ee80\U0001fbf1"
    ),
    "l": (
        "1Ii|\u0196\u01c0\u0269\u0399\u03b9\u0406"
        "\u0456\u04c0\u04cf\u05c0\u05d5\u05df\u0627\u0661\u06f1\u07ca"
        "\u13de\u14aa\u16c1\u2110\u2111\u2160\u2170\u2223\u23fd\u2c92"
        "\u2c93\u2cd0\u2cd1\u2d4f\ua4e1\ua4f2\uabae\ufe8d\ufe8e\uff29"
        "\uff49\uffe8\U0001028a\U00010309\U00010320\U0001041b\U00010443\U00010526\U000118a3\U000118b2"
        "\U000118c3\U000118d2\U00016f16\U00016f28\U0001d22a\U0001d408\U0001d43c\U0001d470\U0001d4d8\U0001d540"
        "\U0001d574\U0001d5a8\U0001d5dc\U0001d610\U0001d644\U0001d678\U0001d6b0\U0001d6ea\U0001d724\U0001d75e"
        "\U0001d798\U0001d7cf\U0001d7d9\U0001d7e3\U0001d7ed\U0001d7f7\U0001e8c7\U0001ee00\U0001ee80\U0001fbf1"
    ),
    "m": (
        "\u039c\u03bc\u03fa\u03fb\u041c\u043c\u13b7\u15f0\u16d6\u2c98"
        "\u2c99\ua4df\uab87\U000102b0\U00010311\U00011700\U000118e3\U0001d6b3\U0001d6ed\U0001d727"
        "\U0001d761\U0001d79b"
    ),
    "n": (
        "\u039d\u03bd\u0548\u054c\u0578\u057c\u2c9a\u2c9b\ua4e0\U00010513"
        "\U0001d6b4\U0001d6ee\U0001d728\U0001d762\U0001d79c"
    ),
    "o": (
        "0\u039f\u03a3\u03bf\u03c3\u041e\u043e\u0555\u0585\u05e1"
        "\u0647\u0665\u06be\u06c1\u06d5\u06f5\u07c0\u0966\u09e6\u0a66"
        "\u0ae6\u0b20\u0b66\u0be6\u0c02\u0c66\u0c82\u0ce6\u0d02\u0d20"
        "\u0d66\u0d82\u0e50\u0ed0\u101d\u1040\u10ff\u12d0\u1cbf\u1d0f"
        "\u1d11\u2c9e\u2c9f\u2d54\u3007\ua4f3\uab3d\ufba6\ufba7\ufba8"
        "\ufba9\ufbaa\ufbab\ufbac\ufbad\ufee9\ufeea\ufeeb\ufeec\U00010292"
        "\U000102ab\U00010404\U0001042c\U000104c2\U000104ea\U00010516\U000114d0\U000118a8\U000118b5\U000118b7"
        "\U000118c8\U000118d5\U000118d7\U000118e0\U0001d6b6\U0001d6d0\U0001d6d4\U0001d6f0\U0001d70a\U0001d70e"
        "\U0001d72a\U0001d744\U0001d748\U0001d764\U0001d77e\U0001d782\U0001d79e\U0001d7b8\U0001d7bc\U0001d7ce"
        "\U0001d7d8\U0001d7e2\U0001d7ec\U0001d7f6\U0001ee24\U0001ee64\U0001ee84\U0001fbf0"
    ),
    "p": (
        "\u03a1\u03c1\u03f1\u0420\u0440\u13e2\u146d\u2374\u2ca2\u2ca3"
        "\ua4d1\uabb2\U00010295\U0001d6b8\U0001d6d2\U0001d6e0\U0001d6f2\U0001d70c\U0001d71a\U0001d72c"
        "\U0001d746\U0001d754\U0001d766\U0001d780\U0001d78e\U0001d7a0\U0001d7ba\U0001d7c8"
    ),
    "r": (
        "\u01a6\u0280\u0413\u0433\u13a1\u13b1\u13d2\u1587\u1d26\u2c84"
        "\u2c85\ua4e3\uab47\uab48\uab71\uab81\uaba2\U000104b4\U000104dc\U00016f35"
        "\U0001d216"
    ),
    "s": (
        "\u01bc\u01bd\u0405\u0455\u054f\u057f\u13d5\u13da\ua4e2\ua731"
        "\uaba5\uabaa\U00010296\U00010420\U00010448\U000118a1\U000118c1\U00016f3a"
    ),
    "t": (
        "\u03a4\u03c4\u0422\u0442\u13a2\u22a4\u27d9\u2ca6\u2ca7\ua4d4"
        "\uab72\U00010297\U000102b1\U00010315\U000118bc\U000118dc\U00016f0a\U0001d6bb\U0001d6f5\U0001d72f"
        "\U0001d769\U0001d7a3\U0001f768"
    ),
    "v": (
        "\u039d\u03bd\u0474\u0475\u05d8\u0667\u06f7\u13d9\u142f\u1d20"
        "\u2228\u22c1\u2d38\ua4e6\ua6df\uaba9\U0001051d\U00011706\U000118a0\U000118c0"
        "\U00016f08\U0001d20d\U0001d6ce\U0001d708\U0001d742\U0001d77c\U0001d7b6"
    ),
    "w": (
        "\u019c\u026f\u0460\u0461\u051c\u051d\u0531\u0561\u13b3\u13d4"
        "\u1d21\ua4ea\uab83\uaba4\U0001170a\U0001170e\U0001170f\U000118e6\U000118ef"
    ),
    "y": (
        "\u0194\u0263\u028f\u0393\u03a5\u03b3\u03c5\u03d2\u0423\u0443"
        "\u04ae\u04af\u10e7\u13a9\u13bd\u1ca7\u1d8c\u1efe\u1eff\u213d"
        "\u2ca8\u2ca9\ua4ec\uab5a\uab79\uab8d\U000102b2\U000118a4\U000118bc\U000118c4"
        "\U000118dc\U00016f43\U0001d6bc\U0001d6c4\U0001d6f6\U0001d6fe\U0001d730\U0001d738\U0001d76a\U0001d772"
        "\U0001d7a4\U0001d7ac"
    ),
}
