import CallBasics
import Testing

@testable import SIP

/// Whose binding a contact is, where several say the same.
@Suite struct LocationTableTests {
    private func binding(
        _ user: String,
        _ number: UInt32,
        lastOctet: UInt32,
        _ parameters: String = ""
    ) throws -> Binding {
        Binding(
            user: user,
            contact: NameAddress(try SIPURI("sip:alice@192.0.2.5:5060\(parameters)")),
            callID: Bytes(user),
            number: number,
            path: [],
            flow: Flow(.udp, local: Transactions.address(1), remote: Transactions.address(lastOctet)),
            push: nil,
            expiresAt: .zero + .seconds(60),
            order: UInt64(number)
        )
    }

    @Test func `who binds the contact of another user gets no requests that go to it`() throws {
        var table = LocationTable()
        let contact = try SIPURI("sip:alice@192.0.2.5:5060")
        table.insert(try binding("alice", 1, lastOctet: 5))
        table.insert(try binding("bob", 2, lastOctet: 6))
        #expect(table.binding(at: contact)?.user == "alice" && table.count == 2)
        // A refresh of its own goes by the new way.
        table.insert(try binding("alice", 3, lastOctet: 7))
        #expect(table.binding(at: contact)?.number == 3)
        table.remove("alice") { _ in true }
        table.insert(try binding("bob", 4, lastOctet: 6))
        #expect(table.binding(at: contact)?.user == "bob")
        // Whose name it has comes, and it is theirs again.
        table.insert(try binding("alice", 5, lastOctet: 5))
        #expect(table.binding(at: contact)?.user == "alice")
    }

    @Test func `phones of one user with one private address are told apart by what else their contacts say`() throws {
        var table = LocationTable()
        table.insert(try binding("alice", 1, lastOctet: 5, ";line=a"))
        table.insert(try binding("alice", 2, lastOctet: 6, ";line=b"))
        let one = try SIPURI("sip:alice@192.0.2.5:5060;line=a")
        let other = try SIPURI("sip:alice@192.0.2.5:5060;line=b")
        #expect(table.binding(at: one)?.number == 1 && table.binding(at: other)?.number == 2)
        #expect(table.binding(at: try SIPURI("sip:alice@192.0.2.5:5060;line=c"))?.number == 2)
        table.remove("alice") { $0.number == 2 }
        #expect(table.binding(at: one)?.number == 1)
        table.remove("alice") { _ in true }
        #expect(table.binding(at: one) == nil && table.count == 0)
    }
}
