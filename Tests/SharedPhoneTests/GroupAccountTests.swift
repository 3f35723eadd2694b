import CallCore
import SharedCore
import Testing

@testable import SharedPhone

@Suite struct GroupAccountTests {
    private var account: GroupAccount {
        var account = GroupAccount("sip:bob@example.test")
        (account.userName, account.displayName, account.registrar) = ("robert", "Bob", "sip:192.0.2.1")
        (account.proxies, account.expires) = (["sip:192.0.2.2;lr", "sip:192.0.2.3;lr"], 600)
        (account.secret, account.secretStore) = (PhoneSecret(password: "Sesame-7"), "desktop")
        account.push = .other(service: "fcm", project: nil, token: "c0ffee")
        return account
    }

    @Test func `both parts of an account make it whole again, and only one has what is secret`() throws {
        var read = GroupAccount(account.stored)
        #expect(read.secret == nil && read.push == nil && read.secretStore == "desktop" && read != account)
        #expect(!"\(account.stored)".contains("Sesame") && !"\(account.stored)".contains("c0ffee"))
        try read.add(secret: account.secretBytes())
        #expect(read == account)
    }

    @Test func `an account without secrets has none to keep`() throws {
        var account = GroupAccount("sip:bob@example.test")
        #expect(try account.secretBytes() == nil)
        try account.add(secret: nil)
        #expect(account == GroupAccount("sip:bob@example.test") && account.stored.parameters == ["expires": "3600"])
    }

    @Test(arguments: ["", "{", "[]", #"{"secret":7}"#, #"{"push":{"carrier":"pigeon-9"}}"#, "\u{0}pigeon-9"])
    func `what is no secret is an error that does not show it`(text: String) throws {
        var account = GroupAccount("sip:bob@example.test")
        let error = #expect(throws: SecretError.self) { try account.add(secret: Array(text.utf8)) }
        #expect(error?.code == .invalid && error?.message.contains("pigeon") == false)
    }

    @Test func `parameters that are not known, or make no sense, are passed over`() {
        let stored = StoredAccount(address: "sip:bob@example.test", parameters: ["colour": "red", "expires": "soon"])
        #expect(GroupAccount(stored) == GroupAccount("sip:bob@example.test"))
    }
}
