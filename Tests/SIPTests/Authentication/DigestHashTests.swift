import Testing

@testable import SIP

@Suite struct DigestHashTests {
    @Test(arguments: DigestVector.rfc + DigestVector.independent)
    func `a response is that of an independent implementation`(vector: DigestVector) throws {
        let algorithm = try #require(DigestAlgorithm(parsing: Bytes(vector.algorithm)))
        let credentials = Credentials(userName: vector.userName, password: vector.password)
        var key = try #require(credentials.ha1(realm: Bytes(vector.realm), hash: algorithm.hash))
        let (nonce, cnonce) = (Bytes(vector.nonce), Bytes(vector.cnonce ?? ""))
        if algorithm.isSession {
            key = DigestInput.sessionKey(algorithm.hash, ha1: key, nonce: nonce, cnonce: cnonce)
        }
        let input = DigestInput(
            hash: algorithm.hash,
            key: key,
            nonce: nonce,
            qop: vector.qop.flatMap { DigestQop(parsing: Bytes($0)) },
            nonceCount: Bytes(vector.nonceCount ?? ""),
            cnonce: cnonce,
            method: Bytes(vector.method),
            uri: Bytes(vector.uri),
            body: Bytes(vector.body)
        )
        #expect(input.response().text == vector.response)
    }

    /// FIPS 180-4's examples of "abc", and RFC 1321's.
    @Test(arguments: [
        (DigestHash.md5, "900150983cd24fb0d6963f7d28e17f72"),
        (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (.sha512_256, "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
    ])
    func `SHA-512-256 is no cut SHA-512`(hash: DigestHash, digits: String) {
        #expect(hash.isAvailable)
        #expect(hash.hex(Bytes("abc")).text == digits)
        #expect(hash.digitCount == digits.utf8.count)
    }

    @Test(arguments: [
        ("MD5", "MD5"), ("md5-SESS", "MD5-sess"), ("sha-256", "SHA-256"), ("SHA-512-256-sess", "SHA-512-256-sess"),
        ("SHA-512", nil), ("-sess", nil), ("", nil), ("MD5-", nil), ("AKAv1-MD5", nil),
    ])
    func `algorithms are known by name without case`(text: String, name: String?) {
        #expect(DigestAlgorithm(parsing: Bytes(text))?.description == name)
    }

    /// RFC 7616, section 3.9.2, as erratum 4897 corrects it.
    @Test func `a name is hidden by its hash`() {
        let credentials = Credentials(userName: "Jäsøn Doe", password: "Secret, or not?")
        #expect(
            credentials.userHash(realm: Bytes("api@example.org"), hash: .sha512_256).text
                == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"
        )
    }

    @Test func `numbers are written in all their digits and read back`() {
        #expect(UInt32(255).hexadecimal.text == "000000ff")
        #expect(Bytes("000000fF").hexadecimal(UInt32.self) == 255)
        #expect(Bytes("0ff").hexadecimal(UInt32.self) == nil)
        #expect(Bytes("0000000g").hexadecimal(UInt32.self) == nil)
    }
}
