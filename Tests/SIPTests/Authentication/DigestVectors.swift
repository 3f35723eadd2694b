@testable import SIP

/// One response of a digest, with all that it is made from.
struct DigestVector: Sendable, CustomStringConvertible {
    let algorithm, userName, realm, password, method, uri, nonce: String
    let nonceCount, cnonce, qop: String?
    let body, response: String

    var description: String { "\(algorithm), \(qop ?? "no qop"), \(response)" }

    init(
        _ algorithm: String,
        _ userName: String,
        _ password: String,
        _ request: (method: String, uri: String),
        nonce: String,
        _ session: (nonceCount: String, cnonce: String, qop: String)?,
        body: String = "",
        realm: String = "sip.test",
        _ response: String
    ) {
        (self.algorithm, self.userName, self.realm, self.password) = (algorithm, userName, realm, password)
        (method, uri) = request
        (self.nonce, self.body, self.response) = (nonce, body, response)
        (nonceCount, cnonce, qop) = (session?.nonceCount, session?.cnonce, session?.qop)
    }

    /// RFC 2617, section 3.5; RFC 7616, section 3.9.1 and 3.9.2, that one as erratum 4897 corrects it.
    static let rfc: [DigestVector] = [
        DigestVector(
            "MD5",
            "Mufasa",
            "Circle Of Life",
            ("GET", "/dir/index.html"),
            nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093",
            ("00000001", "0a4f113b", "auth"),
            realm: "testrealm@host.com",
            "6629fae49393a05397450978507c4ef1"
        ),
        DigestVector(
            "MD5",
            "Mufasa",
            "Circle of Life",
            ("GET", "/dir/index.html"),
            nonce: "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
            ("00000001", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", "auth"),
            realm: "http-auth@example.org",
            "8ca523f5e9506fed4657c9700eebdbec"
        ),
        DigestVector(
            "SHA-256",
            "Mufasa",
            "Circle of Life",
            ("GET", "/dir/index.html"),
            nonce: "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
            ("00000001", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", "auth"),
            realm: "http-auth@example.org",
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"
        ),
        DigestVector(
            "SHA-512-256",
            "Jäsøn Doe",
            "Secret, or not?",
            ("GET", "/doe.json"),
            nonce: "5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK",
            ("00000001", "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v", "auth"),
            realm: "api@example.org",
            "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5"
        ),
    ]

    /// The project's own vectors; Python's hashlib gives the same.
    static let independent: [DigestVector] = [
        DigestVector(
            "MD5",
            "Jäsøn Doe",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("BYE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "5045e4da32da5e96796b9d30",
            nil,
            "56a475e44b0e75a4f81b4ab6666cbea5"
        ),
        DigestVector(
            "SHA-256",
            "bob",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("INVITE", "sip:sip.test"),
            nonce: "c6ed537281b4ab4d9caf4c24",
            nil,
            "6b4bd1c62ab9d3c0b2b21834a57123e390e323c09a07e2add7973f1126f35d18"
        ),
        DigestVector(
            "SHA-512-256",
            "alice",
            "secret",
            ("BYE", "sip:bob@sip.test;transport=tcp"),
            nonce: "967767a7539729bd7e84959d",
            nil,
            "36d6c21c28f5b1c9b07e7d45f54f384f19c23b196d024851e94f427fc4560433"
        ),
        DigestVector(
            "MD5-sess",
            "bob",
            "secret",
            ("REGISTER", "sip:sip.test"),
            nonce: "658a20090b7db1308f2b2be1",
            ("00000001", "38faef3d8099", "auth"),
            "e298789c4840f2ee62166ef60f92e84a"
        ),
        DigestVector(
            "SHA-256-sess",
            "Jäsøn Doe",
            "päss: word",
            ("BYE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "ed4da9d7ea9400326051e584",
            ("000000ff", "4633d03beaa3", "auth"),
            "f3143abbb57a9194613b217c05d575bf729966778d01d015b632ceb7240523e6"
        ),
        DigestVector(
            "MD5",
            "Jäsøn Doe",
            "secret",
            ("REGISTER", "sip:bob@sip.test;transport=tcp"),
            nonce: "9014a1a71caf3547b2a62268",
            ("00000001", "896566ff1f8d", "auth"),
            "40f95d9a59cd019a45a0be16c186032b"
        ),
        DigestVector(
            "SHA-256",
            "+33 1",
            "päss: word",
            ("INVITE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "b085fe495ad29d07c02afa11",
            ("00000001", "4f172a902bc4", "auth"),
            "9745a1f0878d3edfaa95eb1e6b00fbe17156c0e11047aad67226eb2a38cfc217"
        ),
        DigestVector(
            "SHA-512-256",
            "Jäsøn Doe",
            "secret",
            ("MESSAGE", "sip:bob@sip.test;transport=tcp"),
            nonce: "aa8a1b111d4442f505ef5204",
            ("00000001", "154be9d855af", "auth"),
            "5a41b871f34fa158cbb60e1292961898def3ed406dff81282f8efb8a9ffad2f0"
        ),
        DigestVector(
            "MD5-sess",
            "bob",
            "",
            ("REGISTER", "sip:bob@sip.test;transport=tcp"),
            nonce: "455b1e60a9cdf8fa1d6a7ab5",
            ("00000001", "cb9abd65776b", "auth"),
            "4fb931f9eb7111ba817cd75692bda053"
        ),
        DigestVector(
            "SHA-256-sess",
            "qu\"ote",
            "",
            ("MESSAGE", "sip:bob@sip.test;transport=tcp"),
            nonce: "13154f163e6fab4ff1542455",
            ("ffffffff", "81d6e003cdf6", "auth"),
            "805b78ab06ce2a651ab97756721500014631b8246970a4e7644be83352e98207"
        ),
        DigestVector(
            "MD5",
            "alice",
            "",
            ("INVITE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "c12bde19aff2cd02942c550f",
            ("ffffffff", "2c4c067709cc", "auth-int"),
            body: "v=0\r\n",
            "78d042eed42b7fb15be3a669f95f373b"
        ),
        DigestVector(
            "SHA-256",
            "bob",
            "",
            ("BYE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "94b1d030fa663bfc486b5dbb",
            ("ffffffff", "de64ffc48721", "auth-int"),
            body: "v=0\r\n",
            "34a5902196010017daacdb9049da5245358d67b1ced684ecf7c9a684cd4a7c99"
        ),
        DigestVector(
            "SHA-512-256",
            "Jäsøn Doe",
            "secret",
            ("BYE", "sip:bob@sip.test;transport=tcp"),
            nonce: "691074fd6d5d7e368edc1e00",
            ("000000ff", "8948114544dd", "auth-int"),
            body: "v=0\r\n",
            "424b0ab855f4865750879c3fba210ba06c8c5e4f6af028dcf3aff3f5f24bfce8"
        ),
        DigestVector(
            "MD5-sess",
            "alice",
            "",
            ("INVITE", "sip:bob@sip.test;transport=tcp"),
            nonce: "e916effed571b8da4ee21d9a",
            ("00000001", "6a574fa4b393", "auth-int"),
            body: "v=0\r\n",
            "5f79fb2482351598b2592d4f39bdcf2b"
        ),
        DigestVector(
            "SHA-256-sess",
            "alice",
            "",
            ("INVITE", "sip:bob@sip.test;transport=tcp"),
            nonce: "607a1e42c9857302d8fdcec5",
            ("000000ff", "54cb3e9c3654", "auth-int"),
            body: "v=0\r\n",
            "2e2b56014ed7811ebed7673ad446e1f784206bc3db7f55a4dcb6b335c07ded6b"
        ),
        DigestVector(
            "MD5",
            "Jäsøn Doe",
            "secret",
            ("REGISTER", "sip:sip.test"),
            nonce: "d18b6f358b1b2e957a64f7a2",
            nil,
            "806bc3779afa03a3a0bbd4699b564043"
        ),
        DigestVector(
            "SHA-256",
            "bob",
            "secret",
            ("MESSAGE", "sip:bob@sip.test;transport=tcp"),
            nonce: "072c459f41720574a78f9120",
            nil,
            "19cde1b5c6d89249787ee963120ba8093be749387d69ea8852db9acc356f2a61"
        ),
        DigestVector(
            "SHA-512-256",
            "qu\"ote",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("INVITE", "sip:bob@sip.test;transport=tcp"),
            nonce: "0acccd2ed41e93a091697527",
            nil,
            "45690c4b65cb0bd788de1a9f1b6a7160a5d464385d4f293feb1dec1d3899afee"
        ),
        DigestVector(
            "MD5-sess",
            "+33 1",
            "",
            ("INVITE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "c8c696303cdd9128b0ea4abd",
            ("00000002", "95a704a1bef0", "auth"),
            "36d418897ea0cee77ab285b5b972f236"
        ),
        DigestVector(
            "SHA-256-sess",
            "Jäsøn Doe",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("REGISTER", "sip:bob@sip.test;transport=tcp"),
            nonce: "6682220cca3c951a9385ea1b",
            ("000000ff", "1903e8092983", "auth"),
            "af81310d4f6692e00d5b4b9b01838e9ba519ee255fa0d6b529779d04e93d4f25"
        ),
        DigestVector(
            "MD5",
            "bob",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("MESSAGE", "sip:bob@sip.test;transport=tcp"),
            nonce: "202cdfd2bd8ca2e71104b298",
            ("00000002", "cb24b27d1e4b", "auth"),
            "d482faacfd46fa6e717d8c46fbc3c8fa"
        ),
        DigestVector(
            "SHA-256",
            "alice",
            "",
            ("INVITE", "sip:bob@sip.test;transport=tcp"),
            nonce: "f2a1328f11464ca7d6e036da",
            ("00000001", "4db1a99d429d", "auth"),
            "9fda1bc7a371cfdadacb6910f7d0ef3f4c2c9cde4199d6335dc960b4af21d9e4"
        ),
        DigestVector(
            "SHA-512-256",
            "+33 1",
            "",
            ("INVITE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "f53e3e040019b411a5e4e944",
            ("00000002", "484053691972", "auth"),
            "e4f563d8cc0653c49ad741b129f5d6b1205df31f21443682624f68862be3c52e"
        ),
        DigestVector(
            "MD5-sess",
            "alice",
            "secret",
            ("INVITE", "sip:bob@sip.test;transport=tcp"),
            nonce: "cab7685e6bdaef87e9b17992",
            ("00000001", "8dcb1af9af21", "auth"),
            "deceea3653ddf791729e447785c9ea0c"
        ),
        DigestVector(
            "SHA-256-sess",
            "+33 1",
            "",
            ("BYE", "sip:bob@sip.test;transport=tcp"),
            nonce: "cdb22ca82bab9fbbfde5f3b0",
            ("00000002", "c8ca9d859d95", "auth"),
            "99e597bb533b538fb4d354e2897058fa8a4a09621865c87979f8d87b9c8c4fa7"
        ),
        DigestVector(
            "MD5",
            "qu\"ote",
            "secret",
            ("REGISTER", "sip:bob@sip.test;transport=tcp"),
            nonce: "faae03e9ce49835b6bc572b3",
            ("00000001", "c46ed24f78f6", "auth-int"),
            body: "v=0\r\n",
            "b2fbdaadc58da5b09aa0619f06dcb4b6"
        ),
        DigestVector(
            "SHA-256",
            "alice",
            "secret",
            ("BYE", "sip:sip.test"),
            nonce: "75ea01bb1fd4a14f90b9a351",
            ("00000001", "0999f822d5ff", "auth-int"),
            body: "v=0\r\n",
            "0b869fa6ae12137009e3e116e1dcde1577de267fafddd12e168dff67b7dd0f4c"
        ),
        DigestVector(
            "SHA-512-256",
            "alice",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("MESSAGE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "c60d620bb83c73e6460baeef",
            ("00000002", "c4ceb1bcb5bc", "auth-int"),
            body: "v=0\r\n",
            "aee0b75390cee810de23cc2b209aa5a75c5bfd2c8423edd951777e3bb2410edd"
        ),
        DigestVector(
            "MD5-sess",
            "+33 1",
            "päss: word",
            ("REGISTER", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "a1c628793b2f9de6b822e213",
            ("ffffffff", "fa7d00df77db", "auth-int"),
            body: "v=0\r\n",
            "dcace8de2737a0b123a6eb13683a5c3b"
        ),
        DigestVector(
            "SHA-256-sess",
            "alice",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("REGISTER", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "2e378aa92f9ce061b5b41161",
            ("00000001", "b2712a952f03", "auth-int"),
            body: "v=0\r\n",
            "4d041cc9b63a3e6a4ec7662488d90058e0f3fa12849801216513578a08a0fa7f"
        ),
        DigestVector(
            "MD5",
            "alice",
            "secret",
            ("REGISTER", "sip:bob@sip.test;transport=tcp"),
            nonce: "96093ae1d41d8f6a7cc76bba",
            nil,
            "34fd397daae5f81cb930ba45c9192c41"
        ),
        DigestVector(
            "SHA-256",
            "+33 1",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("BYE", "sip:bob@sip.test;transport=tcp"),
            nonce: "00696e76166b9fd6ef7a8f8a",
            nil,
            "53dd7d04519c9d1c664bfdb5dd54c42efe37f58df47a927d86fde09aa633e101"
        ),
        DigestVector(
            "SHA-512-256",
            "alice",
            "secret",
            ("MESSAGE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "cb9e75166afc1f7b56d7b405",
            nil,
            "4f1429eb8eff1ef3b34553196c0f47d4557d9f7f3561f7025ba5e3d747f7d227"
        ),
        DigestVector(
            "MD5-sess",
            "bob",
            "secret",
            ("BYE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "2a62fea8f68ba3ebf5fa7d7c",
            ("00000001", "c9167e417be5", "auth"),
            "63c8cc05e223d3ce1608d8309c811440"
        ),
        DigestVector(
            "SHA-256-sess",
            "+33 1",
            "päss: word",
            ("INVITE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "912d9c9cabeadb339782b584",
            ("000000ff", "ce5f6b2bf7c0", "auth"),
            "a518363cfd861c72521ead6c3de6e1c793fa2eb711054bea07a271a4cf2add56"
        ),
        DigestVector(
            "MD5",
            "Jäsøn Doe",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("INVITE", "sip:bob@sip.test;transport=tcp"),
            nonce: "612a9e67615c78aaa4462740",
            ("ffffffff", "4e46d13259a2", "auth"),
            "d1fbfe23702158e3d052b40e7ee16944"
        ),
        DigestVector(
            "SHA-256",
            "bob",
            "",
            ("BYE", "sip:sip.test"),
            nonce: "2583469596c5b9eb39480551",
            ("00000002", "9884bb35dc22", "auth"),
            "3d67d95b82f1c95b6f7d44405f7e6801799fdb01f0339d58dbb65152d22fc1d3"
        ),
        DigestVector(
            "SHA-512-256",
            "Jäsøn Doe",
            "päss: word",
            ("REGISTER", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "046a6b10b63533f3cddff8fa",
            ("00000002", "261adc4665d2", "auth"),
            "b84b66dfdc29abfb5e701a9b7eb8bfa6d7e68b2140c533500c11bd7ce6f90bf2"
        ),
        DigestVector(
            "MD5-sess",
            "alice",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("BYE", "sip:bob@sip.test;transport=tcp"),
            nonce: "96c3fceca1f8cd36059cb5d4",
            ("ffffffff", "66e8fa69ee61", "auth"),
            "d2be8266d1b2f8a8c11d46879edef523"
        ),
        DigestVector(
            "SHA-256-sess",
            "+33 1",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ("MESSAGE", "sip:sip.test"),
            nonce: "f57927d4bb730f08971d3347",
            ("00000001", "94b971df889b", "auth"),
            "daf2a3b3a4a2530801f9b0d10cbbd97228d4eb396e9217e3390e4a5a1baaeecf"
        ),
        DigestVector(
            "MD5",
            "+33 1",
            "päss: word",
            ("MESSAGE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "41a1a0cad9db6490faa7e404",
            ("ffffffff", "fea017a4c922", "auth-int"),
            body: "v=0\r\n",
            "7e1927ab0169df55d187a258392e36d9"
        ),
        DigestVector(
            "SHA-256",
            "Jäsøn Doe",
            "",
            ("REGISTER", "sip:bob@sip.test;transport=tcp"),
            nonce: "2dd6c63c7f357dc7495a1024",
            ("00000001", "8d2ffecb040c", "auth-int"),
            body: "v=0\r\n",
            "9e974ad97fdc6174c6be66f1582b90b8a75448f5d2df3101abad0b5f9cd14496"
        ),
        DigestVector(
            "SHA-512-256",
            "Jäsøn Doe",
            "secret",
            ("MESSAGE", "sip:sip.test"),
            nonce: "a3ea3aaf016db3321d0a0833",
            ("000000ff", "c808e7d2a279", "auth-int"),
            body: "v=0\r\n",
            "0e2641ce88376fc563b647b75cbd94db05fff9782fa2d01737e6d6645ab1d5c3"
        ),
        DigestVector(
            "MD5-sess",
            "bob",
            "secret",
            ("BYE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "79e8d3b6fbc34209626bd92d",
            ("000000ff", "810ff939b945", "auth-int"),
            body: "v=0\r\n",
            "89c8a39b0efd6b7dfa69f4bf45bfa58d"
        ),
        DigestVector(
            "SHA-256-sess",
            "qu\"ote",
            "",
            ("BYE", "sips:a%40b@[2001:db8::1]:5061"),
            nonce: "b925ffe7680153394c5f5316",
            ("ffffffff", "ca5c1569bfee", "auth-int"),
            body: "v=0\r\n",
            "ad777f78c7c4d4fc850ac72195981af85897ee491c09bed104f628d299b5cce6"
        ),
    ]
}
