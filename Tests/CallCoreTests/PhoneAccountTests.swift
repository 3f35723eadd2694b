import CallCore
import Testing

@Suite struct PhoneAccountTests {
    @Test func `no description and no dump of an account shows its password`() throws {
        var account = try PhoneAccount("sip:alice@example.test", password: "wonderland")
        account.displayName = "Alice"
        var text = "\(account) \(String(reflecting: account))"
        dump(account, to: &text)
        #expect(text.contains("sip:alice@example.test"))
        #expect(!text.contains("wonderland"))
        // Nor as numbers, one a byte: "wond".
        #expect(!text.contains("119"))
    }

    @Test(arguments: ["", "alice", "tel:+4930", "sip:alice@exa mple", "sip:a@b\r\nX: 1"])
    func `what is no address of record makes no account`(address: String) {
        let error = #expect(throws: PhoneError.self) { try PhoneAccount(address) }
        #expect(error?.code == .invalid)
    }
}
