@testable import SIP

/// What the documents leave out of their flows, or the corpora do not hold.
extension RecordedFlow {
    /// A flow as a party of it takes part, with all that it lacks.
    static func whole(_ folder: String, _ section: String, for party: String) throws -> RecordedFlow {
        var flow = try RecordedFlow(folder, section)
        switch "\(folder) \(section)" {
        case "rfc3665 3.4":
            // A server of ours asks for no password of those who say that they are somebody elsewhere.
            if party == "Proxy 2" { try flow.rename("sip:alice@atlanta.example.com", "sip:alice@biloxi.example.com") }
        case "rfc3665 3.9":
            // F6, F8 and F10.
            try flow.addAnswer(486, to: "3.9-04", tag: "314159", after: "3.9-05")
            try flow.addAnswer(486, to: "3.9-02", tag: "314159", after: "3.9-06")
            try flow.addAnswer(486, to: "3.9-01", tag: "314159", after: "3.9-07")
        case "rfc3428 3428": try flow.addAnswer(200, to: "3428-message")
        case "rfc3891 1": try flow.addRequest(.ack, like: "1-02", from: "Bob")
        case "rfc3891 7.1": try flow.addReplacement()
        case "rfc4538 10":
            try flow.complete("10-01", ("Contact", "<sips:A@host.example.com>"))
            try flow.addRequest(.ack, like: "10-02", from: "A")
        case "cc-transfer-06 5.1", "cc-transfer-06 5.2": try flow.addBlindTransfer(for: party)
        case "cc-transfer-06 6.3", "cc-transfer-06 7": try flow.addAttendedTransfer(for: party)
        default: break
        }
        return flow
    }

    /// The INVITE by which Bob takes over the call that rings at his desk, and the ACKs.
    private mutating func addReplacement() throws {
        try add(
            "7.1-02+INVITE",
            from: "Bob's Lab",
            to: "Alice",
            after: "7.1-02",
            "INVITE sip:alice@phone.example.org SIP/2.0",
            "To: <sip:alice@example.org>",
            "From: <sip:bob@example.org>;tag=8983",
            "Call-ID: 09870@labpc.example.org",
            "CSeq: 1 INVITE",
            "Contact: <sip:bob@labpc.example.org>",
            "Replaces: 425928@phone.example.org;to-tag=7743;from-tag=6472;early-only"
        )
        try addRequest(.ack, like: "7.1-03", from: "Bob's Lab")
        try addRequest(.ack, like: "7.1-06", from: "Alice", "sip:bob@example.org")
    }

    // MARK: Transfer

    private static let (transferor, transferee) = (
        "<sips:4889445d8kjtk3@atlanta.example.com;grid=723jd2d>",
        "<sips:3k3k3ld812adkjw@biloxi.example.com;grid=3413kj2ha>"
    )
    private static let target = "<sips:482n4z24kdg@chicago.example.com;grid=8594958>"

    /// Sections 5.1 and 5.2: the target is called, and nothing else is known of it.
    private mutating func addBlindTransfer(for party: String) throws {
        let isTold = section == "5.2"
        let contact = isTold ? "<sips:transferee@192.0.2.4>" : Self.transferee
        try complete("\(section)-01", like: "\(section)-02", ("Contact", contact))
        try addRequest(.ack, like: "\(section)-02", from: "Transferee")
        _ = try addReferral(
            "\(section)-03",
            in: "\(section)-02",
            to: contact,
            ("Refer-To", "<sips:transfertarget@chicago.example.com>"),
            isWithin: isTold || party == "Transferor"
        )
        if isTold {
            try complete(
                "5.2-04",
                like: "5.2-07",
                ("CSeq", "29888 NOTIFY"),
                ("Event", "refer"),
                ("Subscription-State", "active;expires=60"),
                ("Contact", contact),
                ("Content-Type", "message/sipfrag")
            )
        } else {
            try complete("5.1-07", ("Content-Type", "message/sipfrag"))
        }
        try addAnswer(200, to: "\(section)-04")
        try addAnswer(200, to: "\(section)-06", tag: "9m2n3wq", ("Contact", Self.target))
        try addRequest(.ack, like: "\(section)-06+200", from: "Transferee")
        try addAnswer(200, to: "\(section)-07")
        let number: UInt32 = isTold ? 314_160 : 314_161
        try addFarewell(in: "\(section)-02", from: "Transferor", contact, number, after: "\(section)-07+200")
    }

    /// Sections 6.3 and 7: the transferor has called the target, and the new call takes the place of that.
    private mutating func addAttendedTransfer(for party: String) throws {
        if section == "7" { prepend(try RecordedFlow(folder, "6.3").steps.prefix(4)) }
        let (refer, invite) = section == "7" ? ("7-01", "7-02") : ("6.3-05", "6.3-06")
        let referredBy = section == "7" ? [("Referred-By", "<sips:transferor@atlanta.example.com>")] : []
        let replaced = "592435881734450904;to-tag=9m2n3wq;from-tag=763231"
        try addRequest(.ack, like: "6.3-02", from: "Transferee")
        try addRequest(.ack, like: "6.3-04", from: "Transferor")
        let escaped = replaced.replacing(";", with: "%3B").replacing("=", with: "%3D")
        let referTo = ("Refer-To", "<\(Self.target.dropFirst().dropLast())?Replaces=\(escaped)>")
        try complete(
            refer,
            referTo,
            ("Target-Dialog", "090459243588173445;local-tag=7553452;remote-tag=31431"),
            ("Contact", Self.transferor)
        )
        if section == "7" {
            try complete(refer, ("Require", "tdialog"), referredBy[0])
            try complete(
                invite,
                ("To", Self.target),
                ("From", "<sips:transferee@biloxi.example.com>;tag=954"),
                ("Call-ID", "kmzwdle3dl3d08"),
                ("CSeq", "41 INVITE"),
                ("Contact", Self.transferee),
                ("Replaces", replaced),
                referredBy[0]
            )
        }
        let accepted = try addReferral(
            refer,
            in: "6.3-02",
            to: Self.transferee,
            referTo,
            isWithin: party == "Transferor"
        )
        try addReport("first", 100, after: accepted)
        try addAnswer(200, to: invite, tag: "3hf82", ("Contact", Self.target))
        try addRequest(.ack, like: "\(invite)+200", from: "Transferee")
        try addFarewell(in: "6.3-04", from: "Transfer Target", Self.transferor, after: "\(invite)+200+ACK")
        try addReport("last", 200, after: "6.3-04+BYE+200")
        try addFarewell(in: "6.3-02", from: "Transferor", Self.transferee, after: "last+200")
    }

    /// What becomes of a REFER; gives the step behind which that is told.
    ///
    /// Who does not know Target-Dialog refuses the REFER outside of the dialog, and gets another one within it.
    private mutating func addReferral(
        _ name: String,
        in call: String,
        to contact: String,
        _ referTo: (String, String),
        isWithin: Bool
    ) throws -> String {
        guard !isWithin else {
            try addAnswer(202, to: name, ("Contact", contact))
            // The transferee tells it in the call.
            tags = [("a6c85cf", "a84b4c76e66710", "7553452")]
            return "\(name)+202"
        }
        try addAnswer(420, to: name, ("Unsupported", "tdialog"))
        try addRequest(
            .refer,
            like: call,
            from: "Transferor",
            String(contact.dropFirst().dropLast()),
            number: 314_160,
            after: "\(name)+420",
            referTo,
            ("Contact", Self.transferor)
        )
        if section == "7" {
            try complete("\(call)+REFER", ("Referred-By", "<sips:transferor@atlanta.example.com>"))
        }
        try addAnswer(202, to: "\(call)+REFER", ("Contact", contact))
        return "\(call)+REFER+202"
    }

    /// A NOTIFY about the new call, in the call between the transferor and the transferee.
    private mutating func addReport(_ name: String, _ status: Int, after place: String) throws {
        try addRequest(
            .notify,
            named: name,
            like: "6.3-02",
            from: "Transferee",
            String(Self.transferor.dropFirst().dropLast()),
            number: status == 100 ? 29888 : 29889,
            after: place,
            ("Event", "refer"),
            ("Subscription-State", status == 100 ? "active;expires=60" : "terminated;reason=noresource"),
            ("Contact", Self.transferee),
            ("Content-Type", "message/sipfrag")
        )
        try setBody(of: name, SIPFragment(status: status).body)
        try addAnswer(200, to: name)
    }

    private mutating func addFarewell(
        in call: String,
        from sender: String,
        _ contact: String,
        _ number: UInt32 = 314_161,
        after place: String
    ) throws {
        let uri = String(contact.dropFirst().dropLast())
        try addRequest(.bye, like: call, from: sender, uri, number: number, after: place)
        try addAnswer(200, to: "\(call)+BYE")
    }
}
